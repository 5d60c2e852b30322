//! What an agent asks for beyond what every request has, in the words of each protocol. What a protocol has no word for, or a model
//! would refuse, is left out. Laid over a body that is written already; what the model wrote in it stays letter for letter.

use std::collections::BTreeMap;

use adjutant_core::message::{Part, Role};
use adjutant_core::options::{Effort, ModelOptions, ToolChoice};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::effort::{Dial, Tokens, dial};
use super::{Asked, Protocol};
use crate::claude::{Claude, Thought};
use crate::wire::talk::Mark;

/// The least that Anthropic's models may be given to think.
const THINKING_LEAST: u32 = 1024;
/// What a model thinks as a rule.
const THINKING_SOME: u32 = 4096;

/// Fields of an object, their values as they are written.
type Fields = BTreeMap<String, Box<RawValue>>;

/// A body, with what is asked for.
pub(super) fn with_options(protocol: Protocol, asked: &Asked<'_>, body: Vec<u8>) -> Result<Vec<u8>, serde_json::Error> {
    let options = &*asked.request.options;
    // Anthropic's newer models show nothing of their thoughts to whoever does not ask.
    let speaks = matches!(protocol, Protocol::Anthropic | Protocol::Bedrock) && Claude::of(asked.model).is_some();
    if options.is_empty() && !speaks {
        return Ok(body);
    }
    let mut fields: Fields = serde_json::from_slice(&body)?;
    let wish = Wish { options, asked };
    match protocol {
        Protocol::Chat | Protocol::AzureChat => wish.chat(&mut fields)?,
        Protocol::Responses => wish.responses(&mut fields)?,
        Protocol::Anthropic => wish.anthropic(&mut fields)?,
        Protocol::Gemini => wish.gemini(&mut fields)?,
        Protocol::Ollama => wish.ollama(&mut fields)?,
        Protocol::Cohere => wish.cohere(&mut fields)?,
        Protocol::Bedrock => wish.bedrock(&mut fields)?,
    }
    for (name, value) in &options.extra_body {
        // What the request says itself counts.
        if !fields.contains_key(name) {
            put(&mut fields, name, value)?;
        }
    }
    serde_json::to_vec(&fields)
}

fn put(fields: &mut Fields, name: &str, value: &Value) -> Result<(), serde_json::Error> {
    fields.insert(name.to_owned(), RawValue::from_string(serde_json::to_string(value)?)?);
    Ok(())
}

/// Puts fields into an object of the body.
fn within(fields: &mut Fields, name: &str, wanted: Vec<(&str, Option<Value>)>) -> Result<(), serde_json::Error> {
    let mut inner: Fields =
        fields.get(name).map(|raw| serde_json::from_str(raw.get())).transpose()?.unwrap_or_default();
    all(&mut inner, wanted)?;
    if !inner.is_empty() {
        let text = serde_json::to_string(&inner)?;
        fields.insert(name.to_owned(), RawValue::from_string(text)?);
    }
    Ok(())
}

fn all(fields: &mut Fields, wanted: Vec<(&str, Option<Value>)>) -> Result<(), serde_json::Error> {
    for (name, value) in wanted {
        if let Some(value) = value {
            put(fields, name, &value)?;
        }
    }
    Ok(())
}

/// What is asked for, and of whom.
struct Wish<'a> {
    options: &'a ModelOptions,
    asked: &'a Asked<'a>,
}

impl Wish<'_> {
    /// How much to think, where the model thinks.
    fn effort(&self) -> Option<Effort> {
        self.options.reasoning_effort.filter(|_| self.asked.reasons)
    }

    /// How the model is told how much to think.
    fn dial(&self) -> Dial {
        dial(self.asked.vendor, self.asked.model)
    }

    /// Tokens to think: what was asked for, or what an effort comes to. Some room stays for the answer.
    fn thinking(&self) -> Option<u32> {
        let by_effort = |effort| match effort {
            Effort::None => None,
            Effort::Minimal | Effort::Low => Some(THINKING_LEAST),
            Effort::Medium => Some(THINKING_SOME),
            Effort::High => Some(16_384),
            Effort::Xhigh | Effort::Max => Some(32_768),
        };
        let wanted = self.options.thinking_tokens.or_else(|| self.effort().and_then(by_effort))?;
        let room = self.asked.request.max_tokens / 4 * 3;
        (self.asked.reasons && room >= THINKING_LEAST).then(|| wanted.clamp(THINKING_LEAST, room))
    }

    /// A model that refuses a temperature refuses this, too.
    fn top_p(&self) -> Option<Value> {
        self.options.top_p.filter(|_| self.asked.samples).map(Value::from)
    }

    fn stop(&self) -> Option<Value> {
        Some(&self.options.stop).filter(|stop| !stop.is_empty()).map(|stop| json!(stop))
    }

    fn seed(&self) -> Option<Value> {
        self.options.seed.map(Value::from)
    }

    /// The choice, where there is something to choose.
    fn choice(&self) -> Option<&ToolChoice> {
        self.options.tool_choice.as_ref().filter(|_| !self.asked.request.tools.is_empty())
    }

    fn chat(&self, fields: &mut Fields) -> Result<(), serde_json::Error> {
        let choice = self.choice().map(|choice| match choice {
            ToolChoice::Auto => json!("auto"),
            ToolChoice::None => json!("none"),
            ToolChoice::Required => json!("required"),
            ToolChoice::Tool(name) => json!({"type": "function", "function": {"name": name}}),
        });
        let dial = self.dial();
        let effort = self.effort().filter(|effort| !dial.switch || *effort != Effort::None);
        let effort = effort.and_then(|effort| dial.nearest(effort)).map(|word| json!(word.word()));
        let thinking = self.effort().filter(|_| dial.switch).map(|effort| match effort {
            Effort::None => json!({"type": "disabled"}),
            Effort::Minimal | Effort::Low | Effort::Medium | Effort::High | Effort::Xhigh | Effort::Max => {
                json!({"type": "enabled"})
            }
        });
        let rest = [("top_p", self.top_p()), ("stop", self.stop()), ("seed", self.seed())];
        let thought = [("reasoning_effort", effort), ("thinking", thinking), ("tool_choice", choice)];
        all(fields, thought.into_iter().chain(rest).collect())
    }

    fn responses(&self, fields: &mut Fields) -> Result<(), serde_json::Error> {
        let choice = self.choice().map(|choice| match choice {
            ToolChoice::Auto => json!("auto"),
            ToolChoice::None => json!("none"),
            ToolChoice::Required => json!("required"),
            ToolChoice::Tool(name) => json!({"type": "function", "name": name}),
        });
        let reasoning = match (self.effort(), self.thinking()) {
            (Some(effort), _) => {
                let word = self.dial().nearest(effort);
                word.map(|word| json!({"effort": word.word(), "summary": "auto"}))
            }
            (None, Some(_)) => Some(json!({"summary": "auto"})),
            (None, None) => None,
        };
        all(fields, vec![("reasoning", reasoning), ("top_p", self.top_p()), ("tool_choice", choice)])
    }

    /// How one of Anthropic's models is asked to think.
    fn deliberation(&self) -> Deliberation {
        let claude = Claude::of(self.asked.model);
        let effort = self.effort();
        let adaptive = |effort: Option<Effort>| {
            let thinking = json!({"type": "adaptive", "display": "summarized"});
            let effort = effort.map(|effort| json!(adaptive_word(claude, effort)));
            Deliberation { thinking: Some(thinking), effort, thinks: true }
        };
        match claude.map_or(Thought::ByTokens, Claude::thought) {
            Thought::ByTokens => match self.thinking().filter(|_| !self.is_amid_unproven_calls()) {
                Some(tokens) => Deliberation {
                    thinking: Some(json!({"type": "enabled", "budget_tokens": tokens})),
                    effort: None,
                    thinks: true,
                },
                None => Deliberation::default(),
            },
            Thought::Asked => match (effort, self.options.thinking_tokens) {
                (Some(Effort::None), _) | (None, None) => Deliberation::default(),
                (effort, _) => adaptive(effort),
            },
            Thought::Usual if effort == Some(Effort::None) => {
                Deliberation { thinking: Some(json!({"type": "disabled"})), ..Deliberation::default() }
            }
            Thought::Usual | Thought::Always => adaptive(effort),
        }
    }

    /// Whether the model is amid calls of which it has no proof that it thought before them: another model made them. Those that
    /// are given tokens to think refuse to think then.
    fn is_amid_unproven_calls(&self) -> bool {
        let mut messages = self.asked.request.messages.iter().rev().skip_while(|message| message.role == Role::Tool);
        let last = messages.next().filter(|message| message.role == Role::Assistant);
        let proven = |part: &Part| match part {
            Part::Thinking { signature, .. } => {
                let read = |mark: Mark| mark.read(signature.as_deref(), self.asked.model).is_some();
                read(Mark::Anthropic) || read(Mark::AnthropicHidden)
            }
            Part::Text { .. } | Part::Image { .. } | Part::Call { .. } | Part::Result { .. } => false,
        };
        last.is_some_and(|message| !message.parts.iter().any(proven))
    }

    fn anthropic(&self, fields: &mut Fields) -> Result<(), serde_json::Error> {
        let Deliberation { thinking, effort, thinks } = self.deliberation();
        let choice = self.choice().and_then(|choice| match choice {
            ToolChoice::Auto => Some(json!({"type": "auto"})),
            ToolChoice::None => Some(json!({"type": "none"})),
            // Whoever thinks cannot be made to use a tool.
            ToolChoice::Required => (!thinks).then(|| json!({"type": "any"})),
            ToolChoice::Tool(name) => (!thinks).then(|| json!({"type": "tool", "name": name})),
        });
        if thinks {
            fields.remove("temperature");
        }
        let top_p = self.top_p().filter(|_| !thinks);
        within(fields, "output_config", vec![("effort", effort)])?;
        let rest = [("stop_sequences", self.stop()), ("top_p", top_p), ("tool_choice", choice)];
        all(fields, [("thinking", thinking)].into_iter().chain(rest).collect())
    }

    fn gemini(&self, fields: &mut Fields) -> Result<(), serde_json::Error> {
        let thinking = match (self.dial(), self.effort(), self.thinking()) {
            (Dial { tokens: Some(Tokens { off: true, .. }), .. }, Some(Effort::None), None) => {
                Some(json!({"thinkingBudget": 0}))
            }
            (Dial { tokens: Some(Tokens { least, .. }), .. }, Some(Effort::None), None) => {
                Some(json!({"thinkingBudget": least}))
            }
            (Dial { tokens: Some(Tokens { least, most, .. }), .. }, _, tokens) => {
                tokens.map(|tokens| json!({"includeThoughts": true, "thinkingBudget": tokens.clamp(least, most)}))
            }
            (dial, effort, tokens) => {
                // One that goes by words is told the one for so many tokens.
                let meant = self.options.thinking_tokens.and(tokens).map(|tokens| match tokens {
                    few if few <= THINKING_LEAST => Effort::Low,
                    some if some <= THINKING_SOME => Effort::Medium,
                    _ => Effort::High,
                });
                let level = meant.or(effort).and_then(|effort| dial.nearest(effort));
                level.map(|level| json!({"includeThoughts": true, "thinkingLevel": level.word()}))
            }
        };
        let config = [("topP", self.top_p()), ("stopSequences", self.stop()), ("seed", self.seed())];
        let config = config.into_iter().chain([("thinkingConfig", thinking)]).collect();
        within(fields, "generationConfig", config)?;
        let choice = self.choice().map(|choice| match choice {
            ToolChoice::Auto => json!({"mode": "AUTO"}),
            ToolChoice::None => json!({"mode": "NONE"}),
            ToolChoice::Required => json!({"mode": "ANY"}),
            ToolChoice::Tool(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
        });
        within(fields, "toolConfig", vec![("functionCallingConfig", choice)])
    }

    fn ollama(&self, fields: &mut Fields) -> Result<(), serde_json::Error> {
        let rest = vec![("top_p", self.top_p()), ("stop", self.stop()), ("seed", self.seed())];
        within(fields, "options", rest)?;
        let levels = self.asked.model.contains("gpt-oss");
        let think = match self.effort() {
            Some(Effort::None) => Some(json!(false)),
            Some(Effort::Minimal | Effort::Low) if levels => Some(json!("low")),
            Some(effort) if levels => Some(json!(effort.min(Effort::High).word())),
            Some(_) => Some(json!(true)),
            None => self.options.thinking_tokens.filter(|_| self.asked.reasons).map(|_| json!(true)),
        };
        all(fields, vec![("think", think)])
    }

    fn cohere(&self, fields: &mut Fields) -> Result<(), serde_json::Error> {
        let choice = self.choice().and_then(|choice| match choice {
            ToolChoice::Auto => None,
            ToolChoice::None => Some(json!("NONE")),
            ToolChoice::Required | ToolChoice::Tool(_) => Some(json!("REQUIRED")),
        });
        let thinking = match (self.effort(), self.thinking()) {
            (Some(Effort::None), _) => Some(json!({"type": "disabled"})),
            (_, tokens) => tokens.map(|tokens| json!({"type": "enabled", "token_budget": tokens})),
        };
        let rest = [("p", self.top_p()), ("stop_sequences", self.stop()), ("seed", self.seed())];
        all(fields, [("tool_choice", choice), ("thinking", thinking)].into_iter().chain(rest).collect())
    }

    fn bedrock(&self, fields: &mut Fields) -> Result<(), serde_json::Error> {
        // Only Anthropic's models there are asked to think; each maker has words of their own.
        let anthropic = self.asked.model.contains("anthropic.");
        let deliberation = if anthropic { self.deliberation() } else { Deliberation::default() };
        let Deliberation { thinking, effort, thinks } = deliberation;
        let top_p = self.top_p().filter(|_| !thinks);
        within(fields, "inferenceConfig", vec![("topP", top_p), ("stopSequences", self.stop())])?;
        if thinks {
            let config =
                fields.get("inferenceConfig").map(|raw| serde_json::from_str::<Fields>(raw.get())).transpose()?;
            let mut config = config.unwrap_or_default();
            config.remove("temperature");
            fields.insert("inferenceConfig".to_owned(), RawValue::from_string(serde_json::to_string(&config)?)?);
        }
        let effort = effort.map(|effort| json!({"effort": effort}));
        if effort.is_some() {
            // Amazon makes one field of the model's out of both, and nobody says what becomes of it then.
            fields.remove("outputConfig");
        }
        within(fields, "additionalModelRequestFields", vec![("thinking", thinking), ("output_config", effort)])?;
        let choice = self.choice().and_then(|choice| match choice {
            ToolChoice::Auto => Some(json!({"auto": {}})),
            ToolChoice::None => None,
            ToolChoice::Required => (!thinks).then(|| json!({"any": {}})),
            ToolChoice::Tool(name) => (!thinks).then(|| json!({"tool": {"name": name}})),
        });
        match choice {
            Some(choice) => within(fields, "toolConfig", vec![("toolChoice", Some(choice))]),
            None => Ok(()),
        }
    }
}

/// How a model is asked to think.
#[derive(Default)]
struct Deliberation {
    thinking: Option<Value>,
    effort: Option<Value>,
    thinks: bool,
}

/// The word for an effort of models that find out for themselves how much to think.
fn adaptive_word(claude: Option<Claude>, effort: Effort) -> &'static str {
    let most = if claude.is_some_and(|claude| claude.since(4, 7)) { Effort::Max } else { Effort::High };
    effort.clamp(Effort::Low, most).word()
}

#[cfg(test)]
mod tests;
