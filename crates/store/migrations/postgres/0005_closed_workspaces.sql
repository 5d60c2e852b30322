-- When a workspace was taken away. Its row stays for the chains of its runs; nobody finds it any more.
ALTER TABLE workspaces ADD COLUMN closed_at BIGINT;
