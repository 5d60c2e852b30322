-- How many runs of its agent may be driven at the same time, this one among them.
ALTER TABLE runs ADD COLUMN places BIGINT NOT NULL DEFAULT 4;
-- Serves: how many runs of an agent are driven.
CREATE INDEX runs_driven ON runs (workspace, agent) WHERE owner IS NOT NULL;
