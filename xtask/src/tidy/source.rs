//! Rules about the text of one file: its first line, its length, its words, and what its room may call.

use std::path::Path;

use super::braces;
use super::files::TextFile;
use super::{Finding, Rule};

/// A full room. Past this there is usually a second thing in the file that wants its own.
const FULL_FILE_LINES: usize = 400;

const CODE: [&str; 3] = ["rs", "ts", "vue"];
const SOURCES: [&str; 11] = ["rs", "ts", "vue", "js", "mjs", "css", "html", "sql", "sh", "toml", "yml"];
const SOURCES_WITHOUT_EXTENSION: [&str; 3] = ["Makefile", "scripts/", ".ci/"];

const UNFINISHED: [&str; 5] = ["TODO", "FIXME", "XXX", "todo!", "unimplemented!"];

/// Hosts of package registries: every machine has its own mirror, so committed text names none.
const REGISTRY_HOSTS: [&str; 8] = [
    "registry.npmjs.org",
    "registry.yarnpkg.com",
    "static.crates.io",
    "index.crates.io",
    "pypi.org",
    "files.pythonhosted.org",
    "deb.debian.org",
    "archive.ubuntu.com",
];
const HOMES: [&str; 3] = ["/root", "/home", "/Users"];
/// Names that stand for anybody in examples.
const ANYBODY: [&str; 5] = ["you", "user", "me", "alice", "bob"];

/// These files name the words they look for.
const NAMES_THE_WORDS: &str = "xtask/src/tidy/";

/// What one part of the house may not call.
struct Ban {
    rule: Rule,
    under: &'static [&'static str],
    names: &'static [&'static str],
    why: &'static str,
}

const BANS: [Ban; 3] = [
    Ban {
        rule: Rule::CorePurity,
        under: &["crates/core/src/"],
        names: &[
            "std::fs",
            "TcpStream",
            "TcpListener",
            "UdpSocket",
            "ToSocketAddrs",
            "std::env",
            "std::process",
            "SystemTime::now",
            "Instant::now",
            "Timestamp::now",
            "Zoned::now",
            "tokio",
        ],
        why: "core decides and never acts: take the value as an argument",
    },
    Ban {
        rule: Rule::FileAccess,
        under: &[
            "crates/engine/src/",
            "crates/adjutant/src/http/",
            "crates/adjutant/src/openai/",
            "crates/adjutant/src/mcp/",
        ],
        names: &[
            "std::fs",
            "tokio::fs",
            "File::open",
            "File::create",
            "OpenOptions",
            "Path::new",
            "PathBuf::from",
            "canonicalize",
        ],
        why: "files are reached through the confined layer in crates/tools only",
    },
    Ban {
        rule: Rule::NetworkAccess,
        under: &["crates/engine/src/", "crates/models/src/", "crates/store/src/", "crates/adjutant/src/http/"],
        names: &["Client::new", "Client::builder", "ClientBuilder", "TcpStream::connect", "TcpSocket::connect"],
        why: "clients are made by the connector in crates/tools/src/net: take one as an argument",
    },
];

pub(super) fn check(file: &TextFile, repository: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut found = |rule, line, message: String| {
        findings.push(Finding { rule, path: file.path.clone(), line, message });
    };

    if file.has_extension(&["rs"]) && !has_header(&file.text) {
        let message = "the first line must be `//!` and say what this file owns".to_owned();
        found(Rule::Header, Some(1), message);
    }
    if file.has_extension(&CODE) && !file.is_test() {
        let lines = file.production_lines().count();
        if lines > FULL_FILE_LINES {
            let message = format!("{lines} lines without tests; {FULL_FILE_LINES} is a full file");
            found(Rule::LongFile, None, message);
        }
    }
    for (rule, line, message) in banned_calls(file) {
        found(rule, Some(line), message);
    }
    if file.path.starts_with(NAMES_THE_WORDS) {
        return findings;
    }
    for (index, line) in file.text.lines().enumerate() {
        if is_source(file)
            && let Some(word) = UNFINISHED.iter().find(|word| names(line, word))
        {
            found(Rule::Unfinished, Some(index + 1), format!("`{word}` is unfinished work"));
        }
        if let Some(text) = machine_text(line, repository) {
            let message = format!("`{text}` belongs to one machine");
            found(Rule::MachineText, Some(index + 1), message);
        }
    }
    findings
}

fn is_source(file: &TextFile) -> bool {
    file.has_extension(&SOURCES) || SOURCES_WITHOUT_EXTENSION.iter().any(|start| file.path.starts_with(start))
}

fn has_header(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    first.strip_prefix("//! ").is_some_and(|said| !said.trim().is_empty())
}

fn banned_calls(file: &TextFile) -> Vec<(Rule, usize, String)> {
    let mut found = Vec::new();
    for ban in &BANS {
        let applies = ban.under.iter().any(|folder| file.path.starts_with(folder));
        if !applies || !file.has_extension(&["rs"]) || file.is_test() {
            continue;
        }
        for (line, code) in statements(file) {
            if let Some(name) = ban.names.iter().find(|name| names(&code, name)) {
                found.push((ban.rule, line, format!("`{name}`: {}", ban.why)));
            }
        }
    }
    found
}

/// The lines of code with comments left out, and each `use` in one piece with its braces spelled out.
fn statements(file: &TextFile) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut open_use: Option<(usize, String)> = None;
    for (number, line) in file.production_lines() {
        let code = line.split("//").next().unwrap_or_default().trim();
        if let Some((_, so_far)) = &mut open_use {
            so_far.push_str(code);
        } else if is_use(code) {
            open_use = Some((number, code.to_owned()));
        } else if !code.is_empty() {
            found.push((number, code.to_owned()));
        }
        if code.ends_with(';')
            && let Some((start, whole)) = open_use.take()
        {
            found.push((start, braces::expand(&whole).join("\n")));
        }
    }
    found
}

fn is_use(code: &str) -> bool {
    code.starts_with("use ") || (code.starts_with("pub") && code.contains(" use "))
}

/// Whether a line contains a name as a whole, not as part of a longer one.
fn names(line: &str, name: &str) -> bool {
    let part_of_name = |character: char| character.is_alphanumeric() || character == '_';
    line.match_indices(name).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + name.len()..].chars().next();
        let open_end = name.ends_with('!') || !after.is_some_and(part_of_name);
        !before.is_some_and(part_of_name) && open_end
    })
}

/// The part of a line that only makes sense on the machine where it was written.
fn machine_text(line: &str, repository: &Path) -> Option<String> {
    if let Some(host) = REGISTRY_HOSTS.iter().find(|host| line.contains(**host)) {
        return Some((*host).to_owned());
    }
    let checkout = repository.to_string_lossy();
    // A checkout directly under the root, such as `/src`, has a name that means something elsewhere too.
    if checkout.matches('/').count() > 1 && path_at(line, &checkout).is_some() {
        return Some(checkout.into_owned());
    }
    HOMES.iter().find_map(|home| {
        let below = path_at(line, home)?;
        let owner = below.split(['/', '"', '\'', '`', ' ', ')', ',']).next().unwrap_or_default();
        let anybody = owner.is_empty() || ANYBODY.contains(&owner) || owner.starts_with(['$', '<', '{', '*', '…']);
        (!anybody).then(|| format!("{home}/{owner}"))
    })
}

/// What follows `prefix/` where it begins a path, not where it continues one.
fn path_at<'a>(line: &'a str, prefix: &str) -> Option<&'a str> {
    line.match_indices(prefix).find_map(|(at, _)| {
        let before = line[..at].chars().next_back();
        let continues = before.is_some_and(|c| c.is_alphanumeric() || "_-.~*}>)]/".contains(c));
        let below = line[at + prefix.len()..].strip_prefix('/')?;
        (!continues).then_some(below)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(Rule, Option<usize>)> {
        let file = TextFile { path: path.into(), text: text.into() };
        check(&file, Path::new("/srv/build/adjutant")).iter().map(|f| (f.rule, f.line)).collect()
    }

    #[test]
    fn a_rust_file_says_first_what_it_owns() {
        assert_eq!(found("crates/store/src/a.rs", "//! Owns a.\n"), []);
        for text in ["", "//!\n", "//! \n", "// Owns a.\n", "\n//! Owns a.\n"] {
            assert_eq!(found("crates/store/tests/a.rs", text), [(Rule::Header, Some(1))], "{text:?}");
        }
    }

    #[test]
    fn a_file_is_full_at_four_hundred_lines_without_its_tests() {
        let full = format!("//! Full.\n{}", "fn f() {}\n".repeat(399));
        assert_eq!(found("crates/store/src/a.rs", &full), []);
        let tested = format!("{full}#[cfg(test)]\nmod tests {{\n{}}}\n", "fn t() {}\n".repeat(99));
        assert_eq!(found("crates/store/src/a.rs", &tested), []);
        let over = format!("{full}fn one_more() {{}}\n");
        assert_eq!(found("crates/store/src/a.rs", &over), [(Rule::LongFile, None)]);
        assert_eq!(found("crates/store/tests/a.rs", &over), []);
    }

    #[test]
    fn unfinished_words_are_found_in_sources_only() {
        let unfinished = [(Rule::Unfinished, Some(2))];
        assert_eq!(found("ui/src/a.ts", "// A.\n// TODO: b\n"), unfinished);
        assert_eq!(found("scripts/a", "#!/bin/sh\n# FIXME\n"), unfinished);
        assert_eq!(found("crates/store/src/a.rs", "//! A.\nfn a() { todo!() }\n"), unfinished);
        assert_eq!(found("docs/notes.md", "Notes\nTODO\n"), []);
        assert_eq!(found("Cargo.toml", "[lints]\ntodo = \"warn\" # XXXL\n"), []);
    }

    #[test]
    fn text_of_one_machine_is_found_everywhere() {
        let machine = [(Rule::MachineText, Some(1))];
        assert_eq!(found("docs/a.md", "see `/root/.cargo/config`"), machine);
        assert_eq!(found("docs/a.md", "cd /home/jane/adjutant"), machine);
        assert_eq!(found("docs/a.md", "cd /srv/build/adjutant/ui"), machine);
        assert_eq!(found("ui/package-lock.json", "\"https://registry.npmjs.org/vue\""), machine);
        assert_eq!(found("docs/a.md", "the home of /home/you or /home/<name>"), []);
        assert_eq!(found("docs/a.md", "notes/root/plan.md and https://a.example/home/x"), []);
        assert_eq!(found("Cargo.lock", "registry+https://github.com/rust-lang/crates.io-index"), []);
    }

    #[test]
    fn core_touches_neither_clock_nor_files_nor_network() {
        let impure = [(Rule::CorePurity, Some(2))];
        for code in [
            "use std::fs;",
            "use std::{collections::BTreeMap, env};",
            "use std::{\n    io,\n    process::{self, Command},\n};",
            "pub(crate) use tokio::sync::Mutex;",
            "use std::net::{IpAddr, TcpStream};",
            "let now = jiff::Timestamp::now();",
        ] {
            assert_eq!(found("crates/core/src/a.rs", &format!("//! A.\n{code}\n")), impure, "{code}");
        }
        assert_eq!(found("crates/core/src/a.rs", "//! No tokio.\n// std::fs is elsewhere.\nfn tokio_less() {}\n"), []);
        assert_eq!(found("crates/core/src/a.rs", "//! A.\n#[cfg(test)]\nmod tests {\nuse std::fs;\n}\n"), []);
        assert_eq!(found("crates/core/src/a.rs", "//! A.\nuse std::net::IpAddr;\n"), [], "an address is a value");
        assert_eq!(found("crates/core/tests/a.rs", "//! A.\nuse std::fs;\n"), []);
        assert_eq!(found("crates/tools/src/a.rs", "//! A.\nuse std::fs;\n"), []);
    }

    #[test]
    fn engine_and_front_door_reach_files_through_the_confined_layer() {
        let access = [(Rule::FileAccess, Some(2))];
        assert_eq!(found("crates/engine/src/a.rs", "//! A.\ntokio::fs::read(path).await\n"), access);
        assert_eq!(found("crates/adjutant/src/http/a.rs", "//! A.\nlet p = PathBuf::from(name);\n"), access);
        assert_eq!(found("crates/adjutant/src/config.rs", "//! A.\nuse std::fs;\n"), []);
    }

    #[test]
    fn only_the_connector_makes_clients() {
        let access = [(Rule::NetworkAccess, Some(2))];
        assert_eq!(found("crates/models/src/a.rs", "//! A.\nlet client = reqwest::Client::builder();\n"), access);
        assert_eq!(found("crates/engine/src/a.rs", "//! A.\nlet client = Client::new();\n"), access);
        assert_eq!(found("crates/models/src/a.rs", "//! A.\nfn ask(client: &reqwest::Client) {}\n"), []);
        assert_eq!(found("crates/tools/src/net/a.rs", "//! A.\nreqwest::Client::builder()\n"), []);
    }
}
