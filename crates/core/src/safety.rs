//! What keeps runs safe beside the guard, and how it stands: enforced, weaker than it could be, or off. An agent may require some of
//! it; then a run is refused rather than weakened.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::options::{Abilities, Ability};

/// Something that keeps runs safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Safety {
    /// What is said and read is sealed at rest.
    Encryption,
    /// What is committed survives a power cut.
    Durability,
    /// What happens is in a chain of hashes.
    AuditChain,
    /// What leaves goes only to hosts that are granted, and to public addresses.
    EgressFilter,
    /// What its model costs is known before it is asked.
    PriceKnown,
    /// What runs code runs confined.
    Sandbox,
}

impl Safety {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Encryption, Self::Durability, Self::AuditChain, Self::EgressFilter, Self::PriceKnown, Self::Sandbox];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Encryption => "encryption",
            Self::Durability => "durability",
            Self::AuditChain => "audit_chain",
            Self::EgressFilter => "egress_filter",
            Self::PriceKnown => "price_known",
            Self::Sandbox => "sandbox",
        }
    }
}

/// How it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Standing {
    /// As it should be.
    Enforced,
    /// Weaker than it could be.
    Degraded {
        /// Why.
        reason: String,
    },
    /// Not there.
    Off {
        /// Why.
        reason: String,
    },
}

impl Standing {
    /// Weaker than it could be, for this reason.
    #[must_use]
    pub fn degraded(reason: &str) -> Self {
        Self::Degraded { reason: reason.to_owned() }
    }

    /// Not there, for this reason.
    #[must_use]
    pub fn off(reason: &str) -> Self {
        Self::Off { reason: reason.to_owned() }
    }
}

/// How all of it stands.
pub type Standings = BTreeMap<Safety, Standing>;

/// Something that an agent requires: of its model, or of where it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Requirement {
    /// What its model has to be able to do.
    Ability(Ability),
    /// What has to be enforced.
    Safety(Safety),
}

/// All that an agent requires.
pub type Requirements = BTreeSet<Requirement>;

impl From<Requirement> for String {
    fn from(requirement: Requirement) -> Self {
        match requirement {
            Requirement::Ability(ability) => ability.word().to_owned(),
            Requirement::Safety(safety) => safety.word().to_owned(),
        }
    }
}

impl TryFrom<String> for Requirement {
    type Error = String;
    fn try_from(word: String) -> Result<Self, String> {
        let safety = || Safety::ALL.into_iter().find(|safety| safety.word() == word).map(Self::Safety);
        Ability::of(&word).map(Self::Ability).or_else(safety).ok_or_else(|| {
            let abilities = Ability::ALL.map(Ability::word);
            let words = abilities.into_iter().chain(Safety::ALL.map(Safety::word)).collect::<Vec<_>>();
            format!("`{word}` cannot be required; use some of {}", words.join(", "))
        })
    }
}

/// What is required of a model.
#[must_use]
pub fn abilities(required: &Requirements) -> Abilities {
    required
        .iter()
        .filter_map(|requirement| match requirement {
            Requirement::Ability(ability) => Some(*ability),
            Requirement::Safety(_) => None,
        })
        .collect()
}

/// The first thing that is required and not enforced, and how it stands.
#[must_use]
pub fn missing<'a>(required: &Requirements, standings: &'a Standings) -> Option<(Safety, Option<&'a Standing>)> {
    let safeties = required.iter().filter_map(|requirement| match requirement {
        Requirement::Ability(_) => None,
        Requirement::Safety(safety) => Some(*safety),
    });
    let stands = safeties.map(|safety| (safety, standings.get(&safety)));
    stands.into_iter().find(|(_, standing)| *standing != Some(&Standing::Enforced))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_required_and_not_known_to_be_enforced_is_missing() {
        let required: Requirements = serde_json::from_str(r#"["reasoning","encryption","sandbox"]"#).unwrap();
        assert_eq!(serde_json::to_string(&required).unwrap(), r#"["reasoning","encryption","sandbox"]"#);
        assert_eq!(abilities(&required), [Ability::Reasoning].into());
        let mut standings = Standings::from([(Safety::Encryption, Standing::Enforced)]);
        assert_eq!(missing(&required, &standings), Some((Safety::Sandbox, None)), "nobody knows is not enforced");
        standings.insert(Safety::Sandbox, Standing::degraded("old kernel"));
        assert_eq!(missing(&required, &standings).unwrap().0, Safety::Sandbox);
        standings.insert(Safety::Sandbox, Standing::Enforced);
        assert_eq!(missing(&required, &standings), None);
        let unknown = serde_json::from_str::<Requirements>(r#"["luck"]"#).unwrap_err().to_string();
        assert!(unknown.contains("`luck`") && unknown.contains("audit_chain"), "{unknown}");
    }
}
