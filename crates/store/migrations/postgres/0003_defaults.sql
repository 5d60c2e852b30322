-- The model of a chat's runs that name none; none is its agent's.
ALTER TABLE chats ADD COLUMN model TEXT;
-- The model of a person's runs whose agent leaves it to the default; none is the workspace's.
ALTER TABLE users ADD COLUMN default_model TEXT;
