//! The written reasons in `xtask/tidy.toml`: which file may break which rule, and why.
//! An excuse that excuses nothing is a finding itself, so the list only holds what is true.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, bail};

use super::{Finding, Rule};

pub(super) const FILE: &str = "xtask/tidy.toml";

#[derive(Debug, Default)]
pub(super) struct Excuses {
    reasons: BTreeMap<(Rule, String), String>,
}

impl Excuses {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        Self::parse(&text).with_context(|| FILE)
    }

    /// Tables named after rules; in each, a path and its reason.
    fn parse(text: &str) -> anyhow::Result<Self> {
        let tables: BTreeMap<String, BTreeMap<String, String>> = toml::from_str(text)?;
        let mut excuses = Self::default();
        for (name, files) in tables {
            let Some(rule) = Rule::ALL.into_iter().find(|rule| rule.name() == name) else {
                bail!("there is no rule `{name}`");
            };
            if !rule.may_be_excused() {
                bail!("the rule `{name}` has no exceptions");
            }
            for (path, reason) in files {
                if reason.trim().is_empty() {
                    bail!("`{path}` in `{name}` needs a reason");
                }
                excuses.reasons.insert((rule, path), reason);
            }
        }
        Ok(excuses)
    }

    /// Drops what is excused and adds a finding for each excuse that was not needed.
    pub(super) fn apply(&self, findings: Vec<Finding>) -> Vec<Finding> {
        let mut used = BTreeSet::new();
        let mut left = Vec::new();
        for finding in findings {
            let key = (finding.rule, finding.path.clone());
            if self.reasons.contains_key(&key) {
                used.insert(key);
            } else {
                left.push(finding);
            }
        }
        let stale = self.reasons.keys().filter(|key| !used.contains(key));
        left.extend(stale.map(|(rule, path)| Finding {
            rule: Rule::StaleExcuse,
            path: FILE.to_owned(),
            line: None,
            message: format!("`{path}` no longer breaks `{}`: remove it", rule.name()),
        }));
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(path: &str) -> Finding {
        Finding { rule: Rule::LongFile, path: path.into(), line: None, message: String::new() }
    }

    #[test]
    fn an_excuse_covers_its_file_and_its_rule_only() {
        let excuses = Excuses::parse("[long-file]\n\"a.rs\" = \"one table\"\n").unwrap();
        assert_eq!(excuses.apply(vec![long("a.rs"), long("b.rs")]), [long("b.rs")]);
        let other_rule = Finding { rule: Rule::Unfinished, ..long("a.rs") };
        assert!(excuses.apply(vec![long("a.rs"), other_rule.clone()]).contains(&other_rule));
    }

    #[test]
    fn an_excuse_that_is_no_longer_needed_is_found() {
        let excuses = Excuses::parse("[long-file]\n\"a.rs\" = \"one table\"\n").unwrap();
        let rules: Vec<Rule> = excuses.apply(Vec::new()).iter().map(|finding| finding.rule).collect();
        assert_eq!(rules, [Rule::StaleExcuse]);
    }

    #[test]
    fn an_excuse_needs_a_rule_that_exists_and_allows_it_and_a_reason() {
        for text in [
            "[no-such-rule]\n\"a.rs\" = \"because\"\n",
            "[core-purity]\n\"a.rs\" = \"because\"\n",
            "[long-file]\n\"a.rs\" = \" \"\n",
            "[long-file]\n\"a.rs\" = true\n",
        ] {
            assert!(Excuses::parse(text).is_err(), "{text}");
        }
    }
}
