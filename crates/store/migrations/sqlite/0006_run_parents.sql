-- The run that one was forked or edited from. An edit knows what it took the place of; a fork stands in a chat of its own.
UPDATE runs SET parent = edited.first FROM (
    SELECT workspace, superseded_by, MIN(id) AS first FROM runs
    WHERE superseded_by IS NOT NULL GROUP BY workspace, superseded_by
) AS edited WHERE runs.workspace = edited.workspace AND runs.id = edited.superseded_by;
UPDATE runs SET parent = base_run WHERE parent IS NULL AND base_run IS NOT NULL AND EXISTS (
    SELECT 1 FROM runs AS base WHERE base.workspace = runs.workspace AND base.id = runs.base_run AND base.chat <> runs.chat
);
-- Serves: the runs that were made from one, newest first.
CREATE INDEX runs_parent ON runs (workspace, parent, id) WHERE parent IS NOT NULL;
