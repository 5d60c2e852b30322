-- What the instance knows about itself. Never sealed: it is read before any key is there.
CREATE TABLE meta (
    key TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One data key per tenant (and `sys` for the instance), wrapped by the master key. Without the row its content is gone.
CREATE TABLE data_keys (
    workspace TEXT NOT NULL,
    generation INTEGER NOT NULL,
    wrapped BLOB NOT NULL,
    PRIMARY KEY (workspace, generation)
) STRICT, WITHOUT ROWID;

-- Values of the instance itself (signing key, …), sealed.
CREATE TABLE instance (
    key TEXT NOT NULL PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE workspaces (
    id TEXT NOT NULL PRIMARY KEY,
    slug TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    time_zone TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    version INTEGER NOT NULL DEFAULT 1,
    -- What texts may hold, for all agents of the workspace: a JSON array.
    content_filter TEXT NOT NULL DEFAULT '[]',
    -- How long what was said in runs that have ended is kept, such as 90d; none is for ever.
    keep_runs TEXT,
    -- The tools and toolsets there are for its agents: a JSON array; none is all.
    tools TEXT,
    -- The providers whose models may be asked: a JSON array of names; none is all of them.
    providers TEXT,
    -- The model of agents that leave it to the default; none is the instance's own.
    default_model TEXT,
    -- How often something was erased here: what is remembered elsewhere holds only while it stays the same.
    erasures INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE users (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    -- Argon2id in its text form; none for somebody who cannot sign in with one.
    password TEXT,
    owner INTEGER NOT NULL DEFAULT 0,
    active INTEGER NOT NULL DEFAULT 1
) STRICT;

-- What a person may do in a workspace.
CREATE TABLE members (
    workspace TEXT NOT NULL REFERENCES workspaces (id),
    person TEXT NOT NULL REFERENCES users (id),
    role TEXT NOT NULL,
    since INTEGER NOT NULL,
    PRIMARY KEY (workspace, person)
) STRICT;
-- Serves: the workspaces of a person, asked with every request.
CREATE INDEX members_person ON members (person, workspace);

-- Browsers that are signed in; only the hash of the cookie.
CREATE TABLE sessions (
    hash BLOB NOT NULL PRIMARY KEY,
    person TEXT NOT NULL REFERENCES users (id),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
-- Serves: ending every session of a person.
CREATE INDEX sessions_person ON sessions (person);

-- What programs sign in with; only the hash, and the last characters as a hint.
CREATE TABLE tokens (
    id TEXT NOT NULL PRIMARY KEY,
    person TEXT NOT NULL REFERENCES users (id),
    workspace TEXT REFERENCES workspaces (id),
    name TEXT NOT NULL,
    hash BLOB NOT NULL UNIQUE,
    hint TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    used_at INTEGER
) STRICT;
-- Serves: the tokens of a person.
CREATE INDEX tokens_person ON tokens (person, id);

-- Links that are good once: set-up, invitation, new password. Only the hash.
CREATE TABLE invites (
    hash BLOB NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    workspace TEXT REFERENCES workspaces (id),
    role TEXT,
    person TEXT REFERENCES users (id),
    made_by TEXT REFERENCES users (id),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at INTEGER
) STRICT;

-- How often something was tried in a stretch of time, counted before it is checked.
CREATE TABLE attempts (
    key TEXT NOT NULL,
    slot INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (key, slot)
) STRICT;

-- What was answered to a request that carries a key, so that sending it again does nothing twice. Sealed.
CREATE TABLE replies (
    person TEXT NOT NULL,
    key TEXT NOT NULL,
    request BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    -- Who answers it, while there is no reply; none where that went wrong.
    node TEXT,
    reply BLOB,
    PRIMARY KEY (person, key)
) STRICT;
-- Serves: forgetting what is older than a day.
CREATE INDEX replies_created ON replies (created_at);

CREATE TABLE notebooks (
    workspace TEXT NOT NULL REFERENCES workspaces (id),
    id TEXT NOT NULL,
    slug TEXT NOT NULL,
    linked TEXT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (workspace, id),
    UNIQUE (workspace, slug)
) STRICT;

-- The current version of each agent; every version is in agent_versions.
CREATE TABLE agents (
    workspace TEXT NOT NULL REFERENCES workspaces (id),
    id TEXT NOT NULL,
    slug TEXT NOT NULL,
    version INTEGER NOT NULL,
    -- The person it belongs to; none for the workspace.
    owner TEXT,
    -- The person who made it; none where nobody did.
    created_by TEXT,
    PRIMARY KEY (workspace, id),
    UNIQUE (workspace, slug)
) STRICT;

CREATE TABLE agent_versions (
    workspace TEXT NOT NULL,
    agent TEXT NOT NULL,
    version INTEGER NOT NULL,
    slug TEXT NOT NULL,
    active INTEGER NOT NULL,
    spec TEXT NOT NULL,
    saved_at INTEGER NOT NULL,
    PRIMARY KEY (workspace, agent, version)
) STRICT;

CREATE TABLE chats (
    workspace TEXT NOT NULL REFERENCES workspaces (id),
    id TEXT NOT NULL,
    agent TEXT NOT NULL,
    notebook TEXT,
    owner TEXT NOT NULL,
    title BLOB NOT NULL,
    tip TEXT,
    forked_from TEXT,
    created_at INTEGER NOT NULL,
    -- Whether everybody in the workspace may see it.
    shared INTEGER NOT NULL DEFAULT 0,
    -- A name that a client chose for it.
    alias TEXT,
    PRIMARY KEY (workspace, id),
    UNIQUE (workspace, alias)
) STRICT;
-- Serves: the chats of one agent, newest first.
CREATE INDEX chats_agent ON chats (workspace, agent, id);
-- Serves: which chats everybody may see.
CREATE INDEX chats_shared ON chats (workspace, id) WHERE shared = 1;

-- Messages to a chat whose last run has not ended. `id` is the run that it will be; `body` is what it is started from, sealed.
CREATE TABLE waiting_messages (
    workspace TEXT NOT NULL,
    id TEXT NOT NULL,
    chat TEXT NOT NULL,
    person TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    body BLOB NOT NULL,
    failed INTEGER NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT;
-- Serves: the first message that waits in a chat.
CREATE INDEX waiting_messages_chat ON waiting_messages (workspace, chat, id);
-- Serves: the workspace of a message whose run was named.
CREATE INDEX waiting_messages_id ON waiting_messages (id);

-- The log. A body that was erased is NULL; its hashes stay.
CREATE TABLE events (
    workspace TEXT NOT NULL,
    stream TEXT NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    time INTEGER NOT NULL,
    body_hash BLOB NOT NULL,
    body BLOB,
    hash BLOB NOT NULL,
    PRIMARY KEY (workspace, stream, seq)
) STRICT;

-- Heads of the streams that are not runs (audit logs).
CREATE TABLE streams (
    workspace TEXT NOT NULL,
    stream TEXT NOT NULL,
    head_seq INTEGER NOT NULL,
    head_hash BLOB NOT NULL,
    PRIMARY KEY (workspace, stream)
) STRICT, WITHOUT ROWID;

-- Content that events refer to, once per tenant.
CREATE TABLE blocks (
    workspace TEXT NOT NULL,
    hash BLOB NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (workspace, hash)
) STRICT;

-- Which streams use a block, so that erasing one stream spares what others use.
CREATE TABLE block_refs (
    workspace TEXT NOT NULL,
    stream TEXT NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (workspace, stream, hash)
) STRICT, WITHOUT ROWID;
-- Serves: does another stream use this block (erase).
CREATE INDEX block_refs_hash ON block_refs (workspace, hash);

-- Projection: one row per run, and the queue.
CREATE TABLE runs (
    workspace TEXT NOT NULL,
    id TEXT NOT NULL,
    chat TEXT NOT NULL,
    agent TEXT NOT NULL,
    agent_version INTEGER NOT NULL,
    notebook TEXT,
    base_run TEXT,
    base_seq INTEGER,
    parent TEXT,
    initiator TEXT NOT NULL,
    "trigger" TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    superseded_by TEXT,
    head_seq INTEGER NOT NULL,
    head_hash BLOB NOT NULL,
    owner TEXT,
    epoch INTEGER NOT NULL,
    -- The newest program that could not follow its log; only a newer one takes it up.
    beyond INTEGER NOT NULL DEFAULT 0,
    status TEXT NOT NULL,
    due INTEGER,
    updated_at INTEGER NOT NULL,
    ended_at INTEGER,
    turns INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    tokens_input INTEGER NOT NULL,
    tokens_output INTEGER NOT NULL,
    tokens_cached INTEGER NOT NULL,
    tokens_reasoning INTEGER NOT NULL,
    cost INTEGER NOT NULL,
    -- Bytes of the bodies of its events, as they are stored.
    bytes INTEGER NOT NULL DEFAULT 0,
    -- When what was said in it was erased.
    erased_at INTEGER,
    summary BLOB,
    PRIMARY KEY (workspace, id)
) STRICT;
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
    workspace TEXT NOT NULL,
    id TEXT NOT NULL,
    run TEXT NOT NULL,
    chat TEXT NOT NULL,
    agent TEXT NOT NULL,
    call TEXT,
    kind TEXT NOT NULL,
    status TEXT NOT NULL,
    tool TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    decided_at INTEGER,
    card BLOB,
    PRIMARY KEY (workspace, id)
) STRICT;
-- Serves: the inbox, filtered by status, oldest first.
CREATE INDEX approvals_status ON approvals (workspace, status, id);
-- Serves: the items of one run; erasing and rebuilding it.
CREATE INDEX approvals_run ON approvals (workspace, run, id);

-- Projection: the tool calls of a run.
CREATE TABLE calls (
    workspace TEXT NOT NULL,
    run TEXT NOT NULL,
    call TEXT NOT NULL,
    tool TEXT NOT NULL,
    target TEXT,
    verdict TEXT,
    attempts INTEGER NOT NULL,
    proposed_at INTEGER NOT NULL,
    started_at INTEGER,
    PRIMARY KEY (workspace, run, call)
) STRICT;

-- The one terminal result of each call: the key is the promise.
CREATE TABLE results (
    workspace TEXT NOT NULL,
    run TEXT NOT NULL,
    call TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    is_error INTEGER NOT NULL,
    PRIMARY KEY (workspace, run, call)
) STRICT;

-- Projection: what an audit reads, of runs and of audit logs alike, in the order of time. What was said is only in the log.
CREATE TABLE audit (
    workspace TEXT NOT NULL,
    time INTEGER NOT NULL,
    stream TEXT NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    actor TEXT,
    agent TEXT,
    run TEXT,
    tool TEXT,
    target TEXT,
    verdict TEXT,
    is_error INTEGER NOT NULL,
    PRIMARY KEY (workspace, time, stream, seq)
) STRICT, WITHOUT ROWID;
-- Serves: the entries about one run, newest first; rebuilding them.
CREATE INDEX audit_run ON audit (workspace, run, time);

-- Processes that drive runs; a lease by the database's clock.
CREATE TABLE nodes (
    id TEXT NOT NULL PRIMARY KEY,
    expires INTEGER NOT NULL,
    -- The schema that its program knows.
    schema INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Work that one node at a time has charge of, for as long as it is alive.
CREATE TABLE chores (
    name TEXT NOT NULL PRIMARY KEY,
    node TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What agents keep for themselves, with what the run had seen that wrote it.
CREATE TABLE kv (
    workspace TEXT NOT NULL,
    agent TEXT NOT NULL,
    key TEXT NOT NULL,
    value BLOB NOT NULL,
    private INTEGER NOT NULL,
    untrusted INTEGER NOT NULL,
    PRIMARY KEY (workspace, agent, key)
) STRICT;

-- What a person said once and for longer. `body` is the whole rule, sealed; the columns are what it is found by.
CREATE TABLE rules (
    workspace TEXT NOT NULL REFERENCES workspaces (id),
    id TEXT NOT NULL,
    agent TEXT,
    run TEXT,
    expires_at INTEGER,
    body BLOB NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT;

-- When the next call under each key would be on schedule, in microseconds: one number for all nodes.
CREATE TABLE rates (
    key TEXT NOT NULL PRIMARY KEY,
    scheduled INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Projection: every attempt to call a model, once it is over: what was read and written, and what it cost.
CREATE TABLE model_calls (
    workspace TEXT NOT NULL,
    -- The log it is recorded in: a run's, or the workspace's for embeddings and tests of keys.
    log TEXT NOT NULL,
    turn INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    agent TEXT,
    person TEXT NOT NULL,
    key TEXT,
    model TEXT NOT NULL,
    served TEXT,
    at INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    tokens_input INTEGER NOT NULL,
    tokens_output INTEGER NOT NULL,
    tokens_cached INTEGER NOT NULL,
    tokens_reasoning INTEGER NOT NULL,
    tokens_cache_write INTEGER NOT NULL,
    estimated INTEGER NOT NULL,
    -- None where the price is not known.
    cost INTEGER,
    price_version TEXT,
    ms INTEGER NOT NULL,
    PRIMARY KEY (workspace, log, turn, attempt)
) STRICT;
-- Serves: usage of a stretch of time.
CREATE INDEX model_calls_at ON model_calls (workspace, at);
-- Serves: the models that answered when one was asked.
CREATE INDEX model_calls_served ON model_calls (workspace, model, served);

-- What is spent of each budget in each stretch of time, reservations included: one number for all nodes.
CREATE TABLE purses (
    key TEXT NOT NULL PRIMARY KEY,
    spent INTEGER NOT NULL,
    raised INTEGER NOT NULL,
    alerted INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What workspaces, people and keys may spend; agents have theirs in their configuration.
CREATE TABLE budgets (
    workspace TEXT NOT NULL REFERENCES workspaces (id),
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    body TEXT NOT NULL,
    saved_at INTEGER NOT NULL,
    PRIMARY KEY (workspace, kind, subject)
) STRICT;

-- Keys of providers that people brought. The value is sealed and bound to its row, its owner and its hosts.
CREATE TABLE provider_keys (
    workspace TEXT NOT NULL REFERENCES workspaces (id),
    id TEXT NOT NULL,
    -- `workspace`, `person` or `agent`, and which.
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    provider TEXT NOT NULL,
    name TEXT NOT NULL,
    hint TEXT NOT NULL,
    hosts TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    rotated_at INTEGER,
    value BLOB NOT NULL,
    PRIMARY KEY (workspace, id),
    UNIQUE (workspace, kind, subject, provider, name)
) STRICT;

-- Contents of files that an agent wrote while it had read untrusted content.
CREATE TABLE file_marks (
    workspace TEXT NOT NULL,
    notebook TEXT NOT NULL,
    path TEXT NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (workspace, notebook, path, hash)
) STRICT, WITHOUT ROWID;

-- What the search index knows of each file; the text itself is in files_text under the same number.
CREATE TABLE files (
    number INTEGER NOT NULL PRIMARY KEY,
    workspace TEXT NOT NULL,
    notebook TEXT NOT NULL,
    path TEXT NOT NULL,
    size INTEGER NOT NULL,
    modified INTEGER NOT NULL,
    UNIQUE (workspace, notebook, path)
) STRICT;

-- `place` holds the ids of workspace and notebook as words, so that a search never reads another tenant's matches.
CREATE VIRTUAL TABLE files_text USING fts5 (place, body, tokenize = 'porter unicode61');
