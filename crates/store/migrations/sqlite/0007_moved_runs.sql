-- Serves: the runs that may still move, for the ends that are signed each day.
CREATE INDEX runs_open ON runs (workspace, id) WHERE ended_at IS NULL;
-- Serves: the same, of those that ended lately and were erased since.
CREATE INDEX runs_erased ON runs (workspace, erased_at, id) WHERE erased_at IS NOT NULL;
