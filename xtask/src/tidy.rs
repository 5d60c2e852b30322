//! The house rules that no compiler knows: gathers what each rule finds, drops what has a written reason, prints the rest.
//! Decides nothing itself; the rules are in the files beside it.

mod braces;
mod docs;
mod excuses;
mod files;
mod rooms;
mod source;

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use excuses::Excuses;

/// One broken rule, said so that an editor can jump to it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    rule: Rule,
    path: String,
    line: Option<usize>,
    message: String,
}

/// The rules by the name they have in `xtask/tidy.toml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    Header,
    LongFile,
    Unfinished,
    MachineText,
    CorePurity,
    FileAccess,
    NetworkAccess,
    Dependency,
    DevDependency,
    DocPath,
    StaleExcuse,
}

impl Rule {
    const ALL: [Rule; 11] = [
        Rule::Header,
        Rule::LongFile,
        Rule::Unfinished,
        Rule::MachineText,
        Rule::CorePurity,
        Rule::FileAccess,
        Rule::NetworkAccess,
        Rule::Dependency,
        Rule::DevDependency,
        Rule::DocPath,
        Rule::StaleExcuse,
    ];

    fn name(self) -> &'static str {
        match self {
            Rule::Header => "header",
            Rule::LongFile => "long-file",
            Rule::Unfinished => "unfinished",
            Rule::MachineText => "machine-text",
            Rule::CorePurity => "core-purity",
            Rule::FileAccess => "file-access",
            Rule::NetworkAccess => "network-access",
            Rule::Dependency => "dependency",
            Rule::DevDependency => "dev-dependency",
            Rule::DocPath => "doc-path",
            Rule::StaleExcuse => "stale-excuse",
        }
    }

    /// Some rules hold the house up; no reason is good enough to break them.
    fn may_be_excused(self) -> bool {
        match self {
            Rule::LongFile
            | Rule::Unfinished
            | Rule::MachineText
            | Rule::FileAccess
            | Rule::NetworkAccess
            | Rule::DevDependency => true,
            Rule::Header | Rule::CorePurity | Rule::Dependency | Rule::DocPath | Rule::StaleExcuse => false,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {} [{}]", self.message, self.rule.name())
    }
}

/// Checks the whole repository; fails when anything was found.
pub(crate) fn run(repository: &Path) -> anyhow::Result<ExitCode> {
    let files = files::text_files(repository)?;
    let excuses = Excuses::read(&repository.join(excuses::FILE))?;

    let mut findings: Vec<Finding> = files.iter().flat_map(|file| source::check(file, repository)).collect();
    findings.extend(rooms::check(&files)?);
    findings.extend(docs::check(&files, repository));

    let mut unexcused = excuses.apply(findings);
    unexcused.sort_by(|a, b| (&a.path, a.line, a.rule).cmp(&(&b.path, b.line, b.rule)));
    for finding in &unexcused {
        eprintln!("{finding}");
    }
    if unexcused.is_empty() {
        eprintln!("tidy: {} files are in order", files.len());
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("tidy: {} things to put in order", unexcused.len());
    Ok(ExitCode::FAILURE)
}
