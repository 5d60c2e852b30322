-- What the instance knows about itself. Never sealed: it is read before any key is there.
CREATE TABLE meta (
    key TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    value TEXT COLLATE "C" NOT NULL
);

-- One data key per tenant (and `sys` for the instance), wrapped by the master key. Without the row its content is gone.
CREATE TABLE data_keys (
    workspace TEXT COLLATE "C" NOT NULL,
    generation BIGINT NOT NULL,
    wrapped BYTEA NOT NULL,
    PRIMARY KEY (workspace, generation)
);

-- Values of the instance itself (signing key, …), sealed.
CREATE TABLE instance (
    key TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    value BYTEA NOT NULL
);

CREATE TABLE workspaces (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    slug TEXT COLLATE "C" NOT NULL UNIQUE,
    name TEXT COLLATE "C" NOT NULL,
    time_zone TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    version BIGINT NOT NULL DEFAULT 1,
    -- What texts may hold, for all agents of the workspace: a JSON array.
    content_filter TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    -- How long what was said in runs that have ended is kept, such as 90d; none is for ever.
    keep_runs TEXT,
    -- The tools and toolsets there are for its agents: a JSON array; none is all.
    tools TEXT,
    -- The providers whose models may be asked: a JSON array of names; none is all of them.
    providers TEXT,
    -- The model of agents that leave it to the default; none is the instance's own.
    default_model TEXT,
    -- How often something was erased here: what is remembered elsewhere holds only while it stays the same.
    erasures BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE users (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL UNIQUE,
    created_at BIGINT NOT NULL,
    -- Argon2id in its text form; none for somebody who cannot sign in with one.
    password TEXT COLLATE "C",
    owner BIGINT NOT NULL DEFAULT 0,
    active BIGINT NOT NULL DEFAULT 1
);

-- What a person may do in a workspace.
CREATE TABLE members (
    workspace TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id),
    person TEXT COLLATE "C" NOT NULL REFERENCES users (id),
    role TEXT COLLATE "C" NOT NULL,
    since BIGINT NOT NULL,
    PRIMARY KEY (workspace, person)
);
-- Serves: the workspaces of a person, asked with every request.
CREATE INDEX members_person ON members (person, workspace);

-- Browsers that are signed in; only the hash of the cookie.
CREATE TABLE sessions (
    hash BYTEA NOT NULL PRIMARY KEY,
    person TEXT COLLATE "C" NOT NULL REFERENCES users (id),
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
-- Serves: ending every session of a person.
CREATE INDEX sessions_person ON sessions (person);

-- What programs sign in with; only the hash, and the last characters as a hint.
CREATE TABLE tokens (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    person TEXT COLLATE "C" NOT NULL REFERENCES users (id),
    workspace TEXT COLLATE "C" REFERENCES workspaces (id),
    name TEXT COLLATE "C" NOT NULL,
    hash BYTEA NOT NULL UNIQUE,
    hint TEXT COLLATE "C" NOT NULL,
    scopes TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    used_at BIGINT
);
-- Serves: the tokens of a person.
CREATE INDEX tokens_person ON tokens (person, id);

-- Links that are good once: set-up, invitation, new password. Only the hash.
CREATE TABLE invites (
    hash BYTEA NOT NULL PRIMARY KEY,
    kind TEXT COLLATE "C" NOT NULL,
    workspace TEXT COLLATE "C" REFERENCES workspaces (id),
    role TEXT COLLATE "C",
    person TEXT COLLATE "C" REFERENCES users (id),
    made_by TEXT REFERENCES users (id),
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at BIGINT
);

-- How often something was tried in a stretch of time, counted before it is checked.
CREATE TABLE attempts (
    key TEXT COLLATE "C" NOT NULL,
    slot BIGINT NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (key, slot)
);

-- What was answered to a request that carries a key, so that sending it again does nothing twice. Sealed.
CREATE TABLE replies (
    person TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    request BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    -- Who answers it, while there is no reply; none where that went wrong.
    node TEXT,
    reply BYTEA,
    PRIMARY KEY (person, key)
);
-- Serves: forgetting what is older than a day.
CREATE INDEX replies_created ON replies (created_at);

CREATE TABLE notebooks (
    workspace TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id),
    id TEXT COLLATE "C" NOT NULL,
    slug TEXT COLLATE "C" NOT NULL,
    linked TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    PRIMARY KEY (workspace, id),
    UNIQUE (workspace, slug)
);

-- The current version of each agent; every version is in agent_versions.
CREATE TABLE agents (
    workspace TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id),
    id TEXT COLLATE "C" NOT NULL,
    slug TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    -- The person it belongs to; none for the workspace.
    owner TEXT COLLATE "C",
    -- The person who made it; none where nobody did.
    created_by TEXT COLLATE "C",
    PRIMARY KEY (workspace, id),
    UNIQUE (workspace, slug)
);

CREATE TABLE agent_versions (
    workspace TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    slug TEXT COLLATE "C" NOT NULL,
    active BIGINT NOT NULL,
    spec TEXT COLLATE "C" NOT NULL,
    saved_at BIGINT NOT NULL,
    PRIMARY KEY (workspace, agent, version)
);

CREATE TABLE chats (
    workspace TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id),
    id TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    notebook TEXT COLLATE "C",
    owner TEXT COLLATE "C" NOT NULL,
    title BYTEA NOT NULL,
    tip TEXT COLLATE "C",
    forked_from TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    -- Whether everybody in the workspace may see it.
    shared BIGINT NOT NULL DEFAULT 0,
    -- A name that a client chose for it.
    alias TEXT COLLATE "C",
    PRIMARY KEY (workspace, id),
    UNIQUE (workspace, alias)
);
-- Serves: the chats of one agent, newest first.
CREATE INDEX chats_agent ON chats (workspace, agent, id);
-- Serves: which chats everybody may see.
CREATE INDEX chats_shared ON chats (workspace, id) WHERE shared = 1;

-- Messages to a chat whose last run has not ended. `id` is the run that it will be; `body` is what it is started from, sealed.
CREATE TABLE waiting_messages (
    workspace TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    chat TEXT COLLATE "C" NOT NULL,
    person TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    body BYTEA NOT NULL,
    failed BIGINT NOT NULL,
    PRIMARY KEY (workspace, id)
);
-- Serves: the first message that waits in a chat.
CREATE INDEX waiting_messages_chat ON waiting_messages (workspace, chat, id);
-- Serves: the workspace of a message whose run was named.
CREATE INDEX waiting_messages_id ON waiting_messages (id);

-- The log. A body that was erased is NULL; its hashes stay.
CREATE TABLE events (
    workspace TEXT COLLATE "C" NOT NULL,
    stream TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    time BIGINT NOT NULL,
    body_hash BYTEA NOT NULL,
    body BYTEA,
    hash BYTEA NOT NULL,
    PRIMARY KEY (workspace, stream, seq)
);

-- Heads of the streams that are not runs (audit logs).
CREATE TABLE streams (
    workspace TEXT COLLATE "C" NOT NULL,
    stream TEXT COLLATE "C" NOT NULL,
    head_seq BIGINT NOT NULL,
    head_hash BYTEA NOT NULL,
    PRIMARY KEY (workspace, stream)
);

-- Content that events refer to, once per tenant.
CREATE TABLE blocks (
    workspace TEXT COLLATE "C" NOT NULL,
    hash BYTEA NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (workspace, hash)
);

-- Which streams use a block, so that erasing one stream spares what others use.
CREATE TABLE block_refs (
    workspace TEXT COLLATE "C" NOT NULL,
    stream TEXT COLLATE "C" NOT NULL,
    hash BYTEA NOT NULL,
    PRIMARY KEY (workspace, stream, hash)
);
-- Serves: does another stream use this block (erase).
CREATE INDEX block_refs_hash ON block_refs (workspace, hash);

-- Projection: one row per run, and the queue.
CREATE TABLE runs (
    workspace TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    chat TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    agent_version BIGINT NOT NULL,
    notebook TEXT COLLATE "C",
    base_run TEXT COLLATE "C",
    base_seq BIGINT,
    parent TEXT COLLATE "C",
    initiator TEXT COLLATE "C" NOT NULL,
    "trigger" TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    superseded_by TEXT COLLATE "C",
    head_seq BIGINT NOT NULL,
    head_hash BYTEA NOT NULL,
    owner TEXT COLLATE "C",
    epoch BIGINT NOT NULL,
    -- The newest program that could not follow its log; only a newer one takes it up.
    beyond BIGINT NOT NULL DEFAULT 0,
    status TEXT COLLATE "C" NOT NULL,
    due BIGINT,
    updated_at BIGINT NOT NULL,
    ended_at BIGINT,
    turns BIGINT NOT NULL,
    calls BIGINT NOT NULL,
    tokens_input BIGINT NOT NULL,
    tokens_output BIGINT NOT NULL,
    tokens_cached BIGINT NOT NULL,
    tokens_reasoning BIGINT NOT NULL,
    cost BIGINT NOT NULL,
    -- Bytes of the bodies of its events, as they are stored.
    bytes BIGINT NOT NULL DEFAULT 0,
    -- When what was said in it was erased.
    erased_at BIGINT,
    summary BYTEA,
    PRIMARY KEY (workspace, id)
) WITH (fillfactor = 80);
-- Serves: which tenant a run belongs to (the operator's command line, the worker).
CREATE UNIQUE INDEX runs_id ON runs (id);
-- Serves: the runs of one chat, newest first; marking a branch superseded.
CREATE INDEX runs_chat ON runs (workspace, chat, id);
-- Serves: the runs of one agent, newest first.
CREATE INDEX runs_agent ON runs (workspace, agent, id);
-- Serves: the runs that one person started, newest first.
CREATE INDEX runs_initiator ON runs (workspace, initiator, id);
-- Serves: the runs in one status, newest first.
CREATE INDEX runs_status ON runs (workspace, status, id);
-- Serves: when the next run is due.
CREATE INDEX runs_due ON runs (due) WHERE owner IS NULL AND due IS NOT NULL;
-- Serves: which workspaces have runs that are due, and claiming the oldest of each.
CREATE INDEX runs_due_in ON runs (workspace, due, id) WHERE owner IS NULL AND due IS NOT NULL;
-- Serves: giving back what a node owned when it leaves or dies, and how many runs of each workspace it drives.
CREATE INDEX runs_owner ON runs (owner, workspace) WHERE owner IS NOT NULL;

-- Serves: the runs that are old enough to be erased, in the order they ended.
CREATE INDEX runs_kept ON runs (workspace, ended_at, id) WHERE ended_at IS NOT NULL AND erased_at IS NULL;

-- Projection: the inbox.
CREATE TABLE approvals (
    workspace TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    run TEXT COLLATE "C" NOT NULL,
    chat TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    call TEXT COLLATE "C",
    kind TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    tool TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    decided_at BIGINT,
    card BYTEA,
    PRIMARY KEY (workspace, id)
);
-- Serves: the inbox, filtered by status, oldest first.
CREATE INDEX approvals_status ON approvals (workspace, status, id);
-- Serves: the items of one run; erasing and rebuilding it.
CREATE INDEX approvals_run ON approvals (workspace, run, id);

-- Projection: the tool calls of a run.
CREATE TABLE calls (
    workspace TEXT COLLATE "C" NOT NULL,
    run TEXT COLLATE "C" NOT NULL,
    call TEXT COLLATE "C" NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    target TEXT COLLATE "C",
    verdict TEXT COLLATE "C",
    attempts BIGINT NOT NULL,
    proposed_at BIGINT NOT NULL,
    started_at BIGINT,
    PRIMARY KEY (workspace, run, call)
);

-- The one terminal result of each call: the key is the promise.
CREATE TABLE results (
    workspace TEXT COLLATE "C" NOT NULL,
    run TEXT COLLATE "C" NOT NULL,
    call TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    is_error BIGINT NOT NULL,
    PRIMARY KEY (workspace, run, call)
);

-- Projection: what an audit reads, of runs and of audit logs alike, in the order of time. What was said is only in the log.
CREATE TABLE audit (
    workspace TEXT COLLATE "C" NOT NULL,
    time BIGINT NOT NULL,
    stream TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    actor TEXT COLLATE "C",
    agent TEXT COLLATE "C",
    run TEXT COLLATE "C",
    tool TEXT COLLATE "C",
    target TEXT COLLATE "C",
    verdict TEXT COLLATE "C",
    is_error BIGINT NOT NULL,
    PRIMARY KEY (workspace, time, stream, seq)
);
-- Serves: the entries about one run, newest first; rebuilding them.
CREATE INDEX audit_run ON audit (workspace, run, time);

-- Processes that drive runs; a lease by the database's clock.
CREATE TABLE nodes (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    expires BIGINT NOT NULL,
    -- The schema that its program knows.
    schema BIGINT NOT NULL
);

-- Work that one node at a time has charge of, for as long as it is alive.
CREATE TABLE chores (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    node TEXT NOT NULL
);

-- What agents keep for themselves, with what the run had seen that wrote it.
CREATE TABLE kv (
    workspace TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    value BYTEA NOT NULL,
    private BIGINT NOT NULL,
    untrusted BIGINT NOT NULL,
    PRIMARY KEY (workspace, agent, key)
);

-- What a person said once and for longer. `body` is the whole rule, sealed; the columns are what it is found by.
CREATE TABLE rules (
    workspace TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id),
    id TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C",
    run TEXT COLLATE "C",
    expires_at BIGINT,
    body BYTEA NOT NULL,
    PRIMARY KEY (workspace, id)
);

-- When the next call under each key would be on schedule, in microseconds: one number for all nodes.
CREATE TABLE rates (
    key TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    scheduled BIGINT NOT NULL
);

-- Projection: every attempt to call a model, once it is over: what was read and written, and what it cost.
CREATE TABLE model_calls (
    workspace TEXT COLLATE "C" NOT NULL,
    -- The log it is recorded in: a run's, or the workspace's for embeddings and tests of keys.
    log TEXT COLLATE "C" NOT NULL,
    turn BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    agent TEXT COLLATE "C",
    person TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C",
    model TEXT COLLATE "C" NOT NULL,
    served TEXT COLLATE "C",
    at BIGINT NOT NULL,
    outcome TEXT COLLATE "C" NOT NULL,
    tokens_input BIGINT NOT NULL,
    tokens_output BIGINT NOT NULL,
    tokens_cached BIGINT NOT NULL,
    tokens_reasoning BIGINT NOT NULL,
    tokens_cache_write BIGINT NOT NULL,
    estimated BIGINT NOT NULL,
    -- None where the price is not known.
    cost BIGINT,
    price_version TEXT COLLATE "C",
    ms BIGINT NOT NULL,
    PRIMARY KEY (workspace, log, turn, attempt)
);
-- Serves: usage of a stretch of time.
CREATE INDEX model_calls_at ON model_calls (workspace, at);
-- Serves: the models that answered when one was asked.
CREATE INDEX model_calls_served ON model_calls (workspace, model, served);

-- What is spent of each budget in each stretch of time, reservations included: one number for all nodes.
CREATE TABLE purses (
    key TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    spent BIGINT NOT NULL,
    raised BIGINT NOT NULL,
    alerted BIGINT NOT NULL
);

-- What workspaces, people and keys may spend; agents have theirs in their configuration.
CREATE TABLE budgets (
    workspace TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id),
    kind TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    body TEXT COLLATE "C" NOT NULL,
    saved_at BIGINT NOT NULL,
    PRIMARY KEY (workspace, kind, subject)
);

-- Keys of providers that people brought. The value is sealed and bound to its row, its owner and its hosts.
CREATE TABLE provider_keys (
    workspace TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id),
    id TEXT COLLATE "C" NOT NULL,
    -- `workspace`, `person` or `agent`, and which.
    kind TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    provider TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    hint TEXT COLLATE "C" NOT NULL,
    hosts TEXT COLLATE "C" NOT NULL,
    created_by TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    rotated_at BIGINT,
    value BYTEA NOT NULL,
    PRIMARY KEY (workspace, id),
    UNIQUE (workspace, kind, subject, provider, name)
);

-- Contents of files that an agent wrote while it had read untrusted content.
CREATE TABLE file_marks (
    workspace TEXT COLLATE "C" NOT NULL,
    notebook TEXT COLLATE "C" NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    hash BYTEA NOT NULL,
    PRIMARY KEY (workspace, notebook, path, hash)
);

-- The search index: what it knows of each file, and its text.
CREATE TABLE files (
    workspace TEXT COLLATE "C" NOT NULL,
    notebook TEXT COLLATE "C" NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    size BIGINT NOT NULL,
    modified BIGINT NOT NULL,
    body TEXT NOT NULL,
    words TSVECTOR NOT NULL,
    PRIMARY KEY (workspace, notebook, path)
);
-- Serves: search.
CREATE INDEX files_words ON files USING gin (words);
