//! Who stands at the door: people by their password, programs by their token, and what either may do where. Decides nothing
//! about a single thing; hands out a [`Caller`], and everything that is done for somebody takes one.

mod invites;
mod people;
mod secret;
mod sign_in;
mod whose;

pub use invites::{Invited, short as invite_id};
pub use secret::{Password, Secret};
pub use sign_in::{SignIn, TokenAsk};
pub use whose::Member;

use std::fmt;
use std::str::FromStr;

use adjutant_core::id::{TokenId, UserId, WorkspaceId};
use adjutant_core::time::Time;

/// What a person may do in a workspace. Each includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// See.
    Read,
    /// Run agents, edit files, decide about what they started.
    Write,
    /// Agents, members, rules, and every approval.
    Admin,
}

impl Role {
    /// The word it is known by.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A word that is no role or scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is none of {1}")]
pub struct UnknownWord(String, &'static str);

impl FromStr for Role {
    type Err = UnknownWord;
    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        match word {
            "read" => Ok(Self::Read),
            "write" => Ok(Self::Write),
            "admin" => Ok(Self::Admin),
            other => Err(UnknownWord(other.to_owned(), "read, write, admin")),
        }
    }
}

/// What a token may be used for. Independent of each other, except that `admin` includes all but deciding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// See.
    Read,
    /// Start and steer runs.
    Run,
    /// Change files, chats and one's own agents.
    Write,
    /// Decide approvals. Always given by name.
    Decide,
    /// Agents, members, people, tokens.
    Admin,
}

impl Right {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Read, Self::Run, Self::Write, Self::Decide, Self::Admin];

    /// The word it is known by.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Run => "run",
            Self::Write => "write",
            Self::Decide => "approvals:decide",
            Self::Admin => "admin",
        }
    }
}

impl FromStr for Right {
    type Err = UnknownWord;
    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        let known = Self::ALL.into_iter().find(|right| right.word() == word);
        known.ok_or_else(|| UnknownWord(word.to_owned(), "read, run, write, approvals:decide, admin"))
    }
}

/// A set of rights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rights(Vec<Right>);

impl Rights {
    /// Everything: a person at a browser, or the operator's own command line.
    #[must_use]
    pub fn all() -> Self {
        Self(Right::ALL.to_vec())
    }

    /// These.
    #[must_use]
    pub fn of(mut rights: Vec<Right>) -> Self {
        rights.sort_unstable();
        rights.dedup();
        Self(rights)
    }

    /// Whether a right is among them.
    #[must_use]
    pub fn has(&self, right: Right) -> bool {
        self.0.contains(&right) || (right != Right::Decide && self.0.contains(&Right::Admin))
    }

    /// The words, sorted.
    #[must_use]
    pub fn words(&self) -> Vec<&'static str> {
        self.0.iter().map(|right| right.word()).collect()
    }

    fn parse(words: &str) -> Self {
        // A word of a newer version grants nothing here.
        Self::of(words.split_whitespace().filter_map(|word| word.parse().ok()).collect())
    }
}

/// A workspace of a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// Its short name.
    pub slug: String,
    /// Its name.
    pub name: String,
    /// What they may do there.
    pub role: Role,
}

/// How somebody came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// A browser with a cookie.
    Session,
    /// A program with a token.
    Token(TokenId),
    /// The command line of whoever holds the data directory.
    Local,
}

/// Somebody who may come in, and what they may do. Made only by [`crate::Engine::caller`] and its kin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Who it is, or for whom a program acts.
    pub user: UserId,
    /// The name they sign in with.
    pub name: String,
    /// Whether the instance is theirs.
    pub owner: bool,
    /// What they came for at the most.
    pub rights: Rights,
    /// How they came in.
    pub via: Via,
    /// The one workspace that they came for; whoever came for one owns no instance.
    pub only: Option<WorkspaceId>,
    /// When what they showed stops being good, where it is a token that does.
    pub until: Option<Time>,
    /// Where they may do what. Whatever lies outside does not exist for them.
    pub memberships: Vec<Membership>,
}

impl Caller {
    /// What they are in a workspace; none where they are nobody.
    #[must_use]
    pub fn role(&self, workspace: WorkspaceId) -> Option<Role> {
        self.memberships.iter().find(|member| member.workspace == workspace).map(|member| member.role)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admin_includes_all_rights_but_deciding() {
        let admin = Rights::of(vec![Right::Admin]);
        for right in [Right::Read, Right::Run, Right::Write, Right::Admin] {
            assert!(admin.has(right), "{right:?}");
        }
        assert!(!admin.has(Right::Decide));
        assert!(Rights::of(vec![Right::Admin, Right::Decide]).has(Right::Decide));
        assert!(!Rights::of(vec![Right::Write, Right::Run]).has(Right::Read));
    }

    #[test]
    fn a_role_includes_the_ones_before_it_and_words_read_back() {
        assert!(Role::Admin > Role::Write && Role::Write > Role::Read);
        for role in [Role::Read, Role::Write, Role::Admin] {
            assert_eq!(role.word().parse(), Ok(role));
        }
        for right in Right::ALL {
            assert_eq!(right.word().parse(), Ok(right));
        }
        assert!("owner".parse::<Role>().is_err() && "decide".parse::<Right>().is_err());
        assert_eq!(Rights::parse("run read nonsense run").words(), ["read", "run"]);
    }
}
