//! The limits of the built-in tools, named with their unit and the reason for their value.

use std::time::Duration;

/// How long a tool on files may run: a slow disk must not hold a run for the full minute that other tools get.
pub const FILE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a tool on keys may run: it is one small question to the store.
pub const KV_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a tool on the network may take in all.
pub const NET_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a name may take to be found, and a connection to come about.
pub const NET_CONNECT: Duration = Duration::from_secs(10);
/// How long the other end may be silent.
pub const NET_IDLE: Duration = Duration::from_secs(20);
/// How long what was sent may go unheard: then the system gives it up, also when the call that sent it was given up before. Else
/// it would go on trying for minutes, and what nobody waits for would arrive after all.
#[cfg(target_os = "linux")]
pub const NET_UNHEARD: Duration = Duration::from_secs(10);
/// Bytes of an answer that are read; the model sees less, but a page's text is a small part of it.
pub const NET_BODY_BYTES: usize = 4 * 1024 * 1024;
/// How long the exact comparison of two texts may take before a coarser one is good enough.
pub const DIFF_TIME: Duration = Duration::from_millis(500);
/// Bytes of front matter that are parsed; real ones have a few hundred.
pub const FRONT_MATTER_BYTES: usize = 64 * 1024;
/// Properties one call may set or remove.
pub const PROPERTIES: usize = 64;
/// Bytes of a property's name.
pub const PROPERTY_NAME_BYTES: usize = 128;
/// Bytes of one value under a key.
pub const KV_VALUE_BYTES: usize = 64 * 1024;
/// Characters of a key.
pub const KV_KEY_CHARS: usize = 128;
/// Keys one listing returns.
pub const KV_LIST: usize = 500;
/// Characters of a search.
pub const QUERY_CHARS: usize = 1000;
/// Hits a search returns unless it asks for fewer.
pub const HITS: usize = 20;
/// Hits a search can ask for.
pub const HITS_MOST: usize = 50;
/// Hits taken from the index at the most while looking for ones that the scope lets through.
pub const HITS_WINDOW: usize = 3200;
/// How long a search brings the index up to date before it answers from what is there.
pub const INDEX_TIME: Duration = Duration::from_secs(2);
/// Files handed to the index at once.
pub const INDEX_BATCH: usize = 64;
/// Characters of a pattern that filters a listing.
pub const PATTERN_CHARS: usize = 256;
/// A file changed this recently may change again without its time stamp showing it, so it is indexed again next time.
pub const SETTLED: Duration = Duration::from_secs(2);
/// How many days back the date in a template may lie: an approval lives for one day, and midnight may lie in between.
pub const TEMPLATE_DAYS: usize = 3;
