//! What one schedule is made of: how many nodes and runs, what the agent may do, and which faults there are. Each schedule
//! draws which faults are on at all and how often they come, because a run under every fault at once never gets anywhere.

use adjutant_core::guard::policy::Autonomy;

use crate::chance::Dice;

/// Rates are in thousandths of the occasions.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) nodes: usize,
    pub(crate) runs: usize,
    /// How long faults go on.
    pub(crate) storm_secs: u64,
    pub(crate) agent: AgentPlan,
    pub(crate) store: StorePlan,
    pub(crate) node: NodePlan,
    pub(crate) model: ModelPlan,
    pub(crate) tool: ToolPlan,
    pub(crate) people: PeoplePlan,
}

#[derive(Debug, Clone)]
pub(crate) struct AgentPlan {
    pub(crate) autonomy: Autonomy,
    pub(crate) expires: &'static str,
    pub(crate) max_turns: u32,
    pub(crate) max_calls: u32,
    /// A tool that always asks.
    pub(crate) always_asks: Option<&'static str>,
}

#[derive(Debug, Clone)]
pub(crate) struct StorePlan {
    pub(crate) append_fails: u64,
    pub(crate) append_reply_lost: u64,
    pub(crate) append_slow: u64,
    pub(crate) append_late: u64,
    pub(crate) append_twice: u64,
    pub(crate) append_full: u64,
    pub(crate) call_fails: u64,
    pub(crate) call_reply_lost: u64,
    pub(crate) call_slow: u64,
    pub(crate) notice_lost: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct NodePlan {
    pub(crate) crash_before_call: u64,
    pub(crate) crash_after_append: u64,
    pub(crate) crash_in_model: u64,
    pub(crate) crash_in_tool: u64,
    /// Per tick of the director.
    pub(crate) crash: u64,
    pub(crate) cut_off: u64,
    pub(crate) freeze: u64,
    pub(crate) clock_jump: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct ModelPlan {
    pub(crate) fails: u64,
    pub(crate) hangs: u64,
    pub(crate) panics: u64,
    pub(crate) odd: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct ToolPlan {
    pub(crate) fails: u64,
    pub(crate) hangs: u64,
    pub(crate) panics: u64,
    pub(crate) reply_lost: u64,
    pub(crate) late: u64,
    pub(crate) prepare: u64,
    pub(crate) probe: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct PeoplePlan {
    /// Per tick of the director.
    pub(crate) decide: u64,
    pub(crate) cancel: u64,
    pub(crate) pause: u64,
    pub(crate) resume: u64,
    pub(crate) message: u64,
    pub(crate) edit: u64,
    pub(crate) policy: u64,
    pub(crate) outside_edit: u64,
    pub(crate) remove: u64,
}

impl Plan {
    pub(crate) fn draw(dice: &Dice) -> Self {
        // Half of the faults are off in any one schedule; one schedule in ten has none at all.
        let quiet = dice.one_in(10);
        let rate = |most: u64| if quiet || dice.one_in(2) { 0 } else { dice.between(1, most) };
        Self {
            nodes: dice.between(1, 3) as usize,
            runs: if dice.one_in(4) { 2 } else { 1 },
            storm_secs: dice.between(5, 45),
            agent: AgentPlan {
                autonomy: *dice
                    .pick(&[Autonomy::Low, Autonomy::Low, Autonomy::Medium, Autonomy::High, Autonomy::Full])
                    .unwrap_or(&Autonomy::Low),
                expires: dice.pick(&["1m", "1m", "2m", "24h"]).copied().unwrap_or("1m"),
                max_turns: dice.between(2, 4) as u32,
                max_calls: dice.between(3, 12) as u32,
                always_asks: dice.pick(&[None, Some("look"), Some("send"), Some("write")]).copied().flatten(),
            },
            store: StorePlan {
                append_fails: rate(150),
                append_reply_lost: rate(150),
                append_slow: rate(60),
                append_late: rate(80),
                append_twice: rate(80),
                append_full: rate(80),
                call_fails: rate(30),
                call_reply_lost: rate(20),
                call_slow: rate(60),
                notice_lost: rate(500),
            },
            node: NodePlan {
                crash_before_call: rate(8),
                crash_after_append: rate(60),
                crash_in_model: rate(60),
                crash_in_tool: rate(150),
                crash: rate(50),
                cut_off: rate(60),
                freeze: rate(60),
                clock_jump: rate(30),
            },
            model: ModelPlan { fails: rate(300), hangs: rate(30), panics: rate(20), odd: rate(300) },
            tool: ToolPlan {
                fails: rate(300),
                hangs: rate(100),
                panics: rate(100),
                reply_lost: rate(200),
                late: rate(200),
                prepare: rate(60),
                probe: rate(300),
            },
            people: PeoplePlan {
                decide: if dice.one_in(4) { 0 } else { dice.between(50, 500) },
                cancel: rate(30),
                pause: rate(60),
                resume: dice.between(20, 200),
                message: rate(40),
                edit: rate(15),
                policy: rate(30),
                outside_edit: rate(60),
                // Rarely: after it nothing more can be started.
                remove: if dice.one_in(6) { dice.between(1, 60) } else { 0 },
            },
        }
    }
}
