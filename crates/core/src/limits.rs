//! Every limit of the system, named with its unit and the reason for its value.

use std::time::Duration;

/// Text longer than this goes into a block and is referred to by its hash, so that events stay small.
pub const INLINE_BYTES: usize = 4 * 1024;
/// Tool calls one model turn may hold; the rest are refused (T6).
pub const CALLS_PER_TURN: usize = 16;
/// Bytes of one call's arguments (T3).
pub const ARGUMENT_BYTES: usize = 256 * 1024;
/// Nesting of one call's arguments (T3).
pub const ARGUMENT_DEPTH: usize = 32;
/// Model turns of a run unless the agent lowers it.
pub const TURNS: u32 = 50;
/// Tool calls of a run unless the agent lowers it.
pub const TOOL_CALLS: u32 = 200;
/// What an instance allows at the most, whatever an agent says.
pub const TURNS_CEILING: u32 = 200;
/// What an instance allows at the most, whatever an agent says.
pub const TOOL_CALLS_CEILING: u32 = 1000;
/// How long a run goes on at the most, not counting the time it waits for a person or nobody drives it: whatever takes longer hangs, or goes round in
/// circles that are too wide to be noticed.
pub const RUN_TIME: Duration = Duration::from_secs(24 * 60 * 60);
/// What passes between two events of a run counts at most as this long of it: a run that goes on writes events, and whatever is
/// longer is a server that was off, or a queue that nobody drained. Longer than any model or tool is waited for.
pub const RUN_GAP: Duration = Duration::from_secs(60 * 60);
/// Output tokens of one model call unless the agent says otherwise.
pub const OUTPUT_TOKENS: u32 = 4000;
/// Model calls of an agent in one hour unless the agent says otherwise.
pub const REQUESTS_PER_HOUR: u32 = 600;
/// Runs of an agent that are driven at the same time unless it says otherwise: what more asks for comes one after the other.
pub const CONCURRENT_RUNS: u32 = 4;
/// No node drives as many, so that a greater number would only look like a limit.
pub const CONCURRENT_RUNS_CEILING: u32 = 10_000;
/// Tool calls of a person's runs in one minute, over all agents and tools, unless the instance says otherwise.
pub const USER_CALLS_PER_MINUTE: u32 = 600;
/// Runs that triggers start of one agent in one minute: one that sets itself off stays slow enough for a person to see it.
pub const TRIGGERS_PER_MINUTE: u32 = 3;
/// The same call with the same result this often in a row is a loop, not progress.
pub const STUCK_REPEATS: usize = 4;
/// Characters of a user's message.
pub const MESSAGE_BYTES: usize = 256 * 1024;
/// Free fields of an agent, a chat or a run.
pub const METADATA_KEYS: usize = 16;
/// Bytes of the name of a free field.
pub const METADATA_KEY_BYTES: usize = 64;
/// Bytes of the value of a free field: they are for labels and ids, not for documents.
pub const METADATA_VALUE_BYTES: usize = 512;
/// Texts of one request for embeddings: their vectors still make an answer that is read in one piece.
pub const EMBEDDED_TEXTS: usize = 256;
/// Bytes of all these texts together: what a request to the server may hold.
pub const EMBEDDED_BYTES: usize = 1024 * 1024;
/// Files that come with one message.
pub const ATTACHMENTS: usize = 8;
/// Bytes of a text that comes with a message: more would crowd the task out of most windows. A tool reads more in pieces.
pub const ATTACHED_TEXT_BYTES: usize = 128 * 1024;
/// Bytes of a picture that comes with a message: what the strictest of the large providers takes, before base64.
pub const ATTACHED_IMAGE_BYTES: usize = 3_750_000;
/// Bytes of context handed to a model whose window is not known: about 128,000 tokens of plain text.
pub const CONTEXT_BYTES: u64 = 400 * 1024;
/// How long an approval waits before it counts as rejected.
pub const APPROVAL_EXPIRY: Duration = Duration::from_secs(24 * 60 * 60);
/// Bytes of the schema of an answer: it is in the prompt of every call.
pub const OUTPUT_SCHEMA_BYTES: usize = 16 * 1024;
/// How often the schema of an answer may be applied to one place of it.
pub const OUTPUT_SCHEMA_WEIGHT: u64 = 2_000;
/// Regular expressions in the schema of an answer.
pub const OUTPUT_SCHEMA_PATTERNS: usize = 50;
/// How often a model is asked again for an answer that fits its schema.
pub const OUTPUT_REPAIRS: usize = 2;
/// How often a failed model call is tried in all.
pub const MODEL_ATTEMPTS: u32 = 4;
/// How often a tool that failed in a retriable way is tried in all.
pub const TOOL_ATTEMPTS: u32 = 3;
/// How often a person says no to much the same call of a run before it is no longer asked about (rule A5).
pub const REJECTIONS: usize = 3;
/// First wait between two attempts; it doubles each time.
pub const BACKOFF_FIRST: Duration = Duration::from_secs(1);
/// Longest wait between two attempts.
pub const BACKOFF_MOST: Duration = Duration::from_secs(10);
/// A node that has not renewed its lease for this long is taken for dead.
pub const LEASE: Duration = Duration::from_secs(10);
/// How often a node renews its lease.
pub const LEASE_RENEWAL: Duration = Duration::from_secs(3);
/// Appends written in one transaction at the most.
pub const APPENDS_PER_COMMIT: usize = 512;
/// Bytes of a file that a tool reads.
pub const FILE_BYTES: u64 = 4 * 1024 * 1024;
/// Bytes of a file that a notebook keeps: what people bring may be larger than what a tool reads.
pub const KEPT_FILE_BYTES: u64 = 32 * 1024 * 1024;
/// Bytes of a text file that is indexed for search.
pub const INDEXED_FILE_BYTES: u64 = 1024 * 1024;
/// Bytes of tool output handed to the model unless the tool says otherwise.
pub const OUTPUT_BYTES: usize = 64 * 1024;
/// Entries one listing returns.
pub const LIST_ENTRIES: usize = 500;
/// Entries one walk looks at, so that a huge tree cannot hold a tool forever.
pub const WALK_ENTRIES: usize = 200_000;
/// How long a tool runs unless it says otherwise.
pub const TOOL_TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes kept of what went over the wire in one model call, where somebody asked for it.
pub const TAPE_BYTES: usize = 256 * 1024;
/// How long one model call may take in all.
pub const MODEL_TIMEOUT: Duration = Duration::from_secs(300);
/// How long a model may stay silent: before its first byte, and between two.
pub const MODEL_SILENCE: Duration = Duration::from_secs(60);
/// How long deltas are gathered before they are handed on.
pub const DELTA_COALESCE: Duration = Duration::from_millis(20);
/// Events a slow reader may fall behind before it has to read the log again.
pub const FEED_BACKLOG: usize = 1024;
/// Messages that wait in one chat until it is free.
pub const MESSAGES_WAITING: u32 = 16;
/// Runs of a chat that is taken in from a file: as many as an export holds.
pub const IMPORTED_RUNS: usize = 100;
/// Runs one node drives at the same time unless the operator says otherwise: they wait for models most of the time.
pub const RUNS_PER_NODE: usize = 1024;
/// Runs of one workspace that a node drives for each place that it leaves free: however slow they are, whoever comes next from
/// another workspace finds a place.
pub const PLACES_PER_FREE: u32 = 7;
/// How long a yes lasts at the most that a person gives for longer than one call.
pub const LASTING_YES: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How short it may be asked to last: less could be over before it is used.
pub const LASTING_YES_LEAST: Duration = Duration::from_secs(60);
/// Standing rules of a workspace: each is looked at for each call.
pub const RULES: usize = 1000;
/// People whom an agent is shared with, and as many who decide for it.
pub const AGENT_PEOPLE: usize = 64;
/// Kinds of data that an agent names.
pub const DATA_KINDS: usize = 32;
/// Characters of one of them.
pub const DATA_KIND_CHARS: usize = 64;
/// Bytes of a rule's note.
pub const RULE_NOTE_BYTES: usize = 1000;
/// Examples that a rule carries.
pub const RULE_EXAMPLES: usize = 64;
