-- The person who made the agent; none where nobody did, or nobody wrote it down.
ALTER TABLE agents ADD COLUMN created_by TEXT;

-- The model of agents that leave it to the default; none is the instance's own.
ALTER TABLE workspaces ADD COLUMN default_model TEXT;
