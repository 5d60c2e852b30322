//! Purses: how much of a budget is spent or promised. Changed inside the transaction of the append that needs it, so that no
//! two nodes can spend the same money.

use std::collections::BTreeMap;

use crate::money::MicroUsd;

/// What is kept of one purse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Purse {
    /// What was spent, and what is reserved.
    pub spent: MicroUsd,
    /// What people added to its limit.
    pub raised: MicroUsd,
    /// The highest amount that was pointed out.
    pub alerted: MicroUsd,
}

/// Purses by their name.
pub type Purses = BTreeMap<String, Purse>;

/// One change of one purse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spend {
    /// The purse.
    pub purse: String,
    /// What changes.
    pub change: Change,
}

/// What changes in a purse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Money for a call is put aside, if there is as much under the limit.
    Reserve {
        /// The most the call can cost.
        amount: MicroUsd,
        /// What may be spent in all; none is no limit.
        limit: Option<MicroUsd>,
    },
    /// A call is over: what it cost takes the place of what was put aside. Never refused, for it has happened.
    Settle {
        /// What was put aside.
        reserved: MicroUsd,
        /// What it cost.
        cost: MicroUsd,
    },
    /// A person adds to the limit.
    Raise(MicroUsd),
    /// An amount is pointed out, if it was not before.
    Alert(MicroUsd),
}

/// A change that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overspent {
    /// The purse.
    pub purse: String,
    /// What may be spent from it, raises included.
    pub limit: MicroUsd,
    /// What is spent or reserved.
    pub spent: MicroUsd,
    /// What was asked for; nothing where something was to be pointed out twice.
    pub needed: MicroUsd,
}

/// Makes all changes, or says which are refused; then none is to be made.
///
/// # Errors
/// The changes that are refused.
pub fn spend_all(purses: &Purses, spends: &[Spend]) -> Result<Purses, Vec<Overspent>> {
    let mut after = purses.clone();
    let mut refused = Vec::new();
    for Spend { purse, change } in spends {
        let kept = after.entry(purse.clone()).or_default();
        let over = |limit| Overspent { purse: purse.clone(), limit, spent: kept.spent, needed: MicroUsd::ZERO };
        match *change {
            Change::Reserve { amount, limit } => match limit.map(|limit| limit + kept.raised) {
                Some(limit) if kept.spent + amount > limit => refused.push(Overspent { needed: amount, ..over(limit) }),
                Some(_) | None => kept.spent += amount,
            },
            Change::Settle { reserved, cost } => {
                kept.spent = MicroUsd(kept.spent.0.saturating_sub(reserved.0)) + cost;
            }
            Change::Raise(amount) => kept.raised += amount,
            Change::Alert(at) if at > kept.alerted => kept.alerted = at,
            Change::Alert(at) => refused.push(over(at)),
        }
    }
    if refused.is_empty() { Ok(after) } else { Err(refused) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reserve(purse: &str, amount: u64, limit: u64) -> Spend {
        let change = Change::Reserve { amount: MicroUsd(amount), limit: Some(MicroUsd(limit)) };
        Spend { purse: purse.into(), change }
    }

    fn settle(purse: &str, reserved: u64, cost: u64) -> Spend {
        let change = Change::Settle { reserved: MicroUsd(reserved), cost: MicroUsd(cost) };
        Spend { purse: purse.into(), change }
    }

    #[test]
    fn one_empty_purse_is_enough_to_refuse_and_then_nothing_is_taken() {
        let purses = spend_all(&Purses::new(), &[reserve("a", 60, 100), reserve("b", 60, 1000)]).unwrap();
        let refused = spend_all(&purses, &[reserve("a", 60, 100), reserve("b", 60, 1000)]).unwrap_err();
        assert_eq!(refused.len(), 1);
        let Overspent { purse, limit, spent, needed } = refused[0].clone();
        assert_eq!((purse.as_str(), limit.0, spent.0, needed.0), ("a", 100, 60, 60));
    }

    #[test]
    fn a_settled_call_gives_back_what_it_did_not_cost() {
        let purses = spend_all(&Purses::new(), &[reserve("a", 100, 100)]).unwrap();
        let purses = spend_all(&purses, &[settle("a", 100, 30)]).unwrap();
        assert_eq!(purses["a"].spent, MicroUsd(30));
        assert!(spend_all(&purses, &[reserve("a", 70, 100)]).is_ok());
        assert!(spend_all(&purses, &[reserve("a", 71, 100)]).is_err());
        let dear = spend_all(&purses, &[settle("a", 0, 500)]).unwrap();
        assert_eq!(dear["a"].spent, MicroUsd(530), "what has happened is counted, whatever the limit");
    }

    #[test]
    fn a_raise_makes_room_and_an_alert_comes_once() {
        let raise = Spend { purse: "a".into(), change: Change::Raise(MicroUsd(50)) };
        let purses = spend_all(&Purses::new(), &[reserve("a", 100, 100), raise]).unwrap();
        assert!(spend_all(&purses, &[reserve("a", 50, 100)]).is_ok());
        assert!(spend_all(&purses, &[reserve("a", 51, 100)]).is_err());
        let alert = |at| Spend { purse: "a".into(), change: Change::Alert(MicroUsd(at)) };
        let purses = spend_all(&purses, &[alert(5)]).unwrap();
        assert!(spend_all(&purses, &[alert(5)]).is_err());
        assert!(spend_all(&purses, &[alert(6)]).is_ok());
    }

    proptest! {
        #[test]
        fn reservations_never_pass_the_limit(amounts in prop::collection::vec(0_u64..50, 0..100), limit in 0_u64..500) {
            let mut purses = Purses::new();
            for amount in amounts {
                purses = spend_all(&purses, &[reserve("a", amount, limit)]).unwrap_or(purses);
                prop_assert!(purses.get("a").copied().unwrap_or_default().spent.0 <= limit);
            }
        }
    }
}
