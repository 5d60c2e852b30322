//! What a model without a brain sees of a request: the last thing a person said and what has happened since. Read from
//! the transcript alone, so that the same request is always seen the same way.

use std::borrow::Cow;

use adjutant_core::content::Content;
use adjutant_core::id::CallId;
use adjutant_core::message::{Message, ModelRequest, Part, Role};

/// One tool call since the last thing a person said, with its result once it is there.
#[derive(Debug, Clone)]
pub(crate) struct Step<'a> {
    id: &'a CallId,
    /// Which answer since then made the call; the first is 1.
    pub(crate) turn: usize,
    /// The tool.
    pub(crate) name: &'a str,
    /// Its arguments as JSON text.
    pub(crate) arguments: Cow<'a, str>,
    /// What it answered.
    pub(crate) result: Option<Outcome<'a>>,
}

/// The result of a call.
#[derive(Debug, Clone)]
pub(crate) struct Outcome<'a> {
    /// What the tool answered.
    pub(crate) output: Cow<'a, str>,
    /// Whether it failed or was refused.
    pub(crate) is_error: bool,
}

/// A request, seen from its last message of a person.
#[derive(Debug)]
pub(crate) struct View<'a> {
    request: &'a ModelRequest,
    /// What the person said.
    pub(crate) user: String,
    /// What the model had said last before that.
    pub(crate) before: String,
    /// Which answer to it this is; the first is 1.
    pub(crate) turn: usize,
    /// The calls since then, in order.
    pub(crate) steps: Vec<Step<'a>>,
}

impl<'a> View<'a> {
    /// Looks at a request.
    pub(crate) fn of(request: &'a ModelRequest) -> Self {
        let messages = &request.messages;
        let start = messages.iter().rposition(|message| message.role == Role::User);
        let user = start.map(|at| said(&messages[at])).unwrap_or_default();
        let earlier = messages[..start.unwrap_or(0)].iter().rev().filter(|message| message.role == Role::Assistant);
        let before = earlier.map(Message::plain).find(|text| !text.is_empty()).unwrap_or_default();
        let mut view = Self { request, user, before, turn: 1, steps: Vec::new() };
        for message in &messages[start.map_or(0, |at| at + 1)..] {
            for part in &message.parts {
                match part {
                    Part::Call { id, name, arguments } => {
                        let arguments = arguments.text();
                        view.steps.push(Step { id, turn: view.turn, name, arguments, result: None });
                    }
                    Part::Result { id, output, is_error, .. } => view.settle(id, output, *is_error),
                    Part::Text { .. } | Part::Image { .. } | Part::Thinking { .. } => {}
                }
            }
            if message.role == Role::Assistant {
                view.turn += 1;
            }
        }
        view
    }

    fn settle(&mut self, id: &CallId, output: &'a Content, is_error: bool) {
        if let Some(step) = self.steps.iter_mut().rfind(|step| step.id == id) {
            step.result = Some(Outcome { output: output.text(), is_error });
        }
    }

    /// The calls of the answer before this one, whose results this answer is about.
    pub(crate) fn latest(&self) -> impl Iterator<Item = &Step<'a>> {
        self.steps.iter().filter(|step| step.turn + 1 == self.turn)
    }

    /// The newest result in the whole transcript, of one tool if it is named.
    pub(crate) fn newest_result(&self, tool: Option<&str>) -> Option<Cow<'a, str>> {
        let parts = self.request.messages.iter().rev().flat_map(|message| message.parts.iter().rev());
        parts.into_iter().find_map(|part| match part {
            Part::Result { name, output, .. } if tool.is_none_or(|tool| tool == name) => Some(output.text()),
            Part::Result { .. }
            | Part::Text { .. }
            | Part::Image { .. }
            | Part::Thinking { .. }
            | Part::Call { .. } => None,
        })
    }
}

/// What a person said, without the note that a long conversation has at its beginning: it is not theirs.
fn said(message: &Message) -> String {
    let note = |text: &str| text.starts_with('[') && text.ends_with("were left out to fit the window.]");
    let texts = message.parts.iter().filter_map(|part| match part {
        Part::Text { text, .. } => Some(text.text()).filter(|text| !note(text)),
        Part::Image { .. } | Part::Thinking { .. } | Part::Call { .. } | Part::Result { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use adjutant_core::label::Labels;
    use adjutant_core::message::{FinishReason, ModelAnswer, RawCall};
    use adjutant_core::tool::ToolDefinition;

    use super::*;

    /// A request in which a person said these things, one after the other.
    pub(crate) fn request(said: &[&str]) -> ModelRequest {
        ModelRequest {
            model: "test/model".into(),
            system: "Be kind.".into(),
            tools: Arc::default(),
            messages: said.iter().map(|text| Message::text(Role::User, *text)).collect(),
            max_tokens: 100,
            temperature: None,
            options: Arc::default(),
            output_schema: None,
        }
    }

    /// Gives a request these tools, each with these arguments.
    pub(crate) fn with_tools(mut request: ModelRequest, tools: &[(&str, &[&str])]) -> ModelRequest {
        let define = |(name, arguments): &(&str, &[&str])| {
            let properties: serde_json::Map<_, _> =
                arguments.iter().map(|name| ((*name).to_owned(), serde_json::json!({}))).collect();
            let schema = serde_json::json!({"type": "object", "properties": properties});
            ToolDefinition { name: (*name).to_owned(), description: String::new(), schema }
        };
        request.tools = Arc::new(tools.iter().map(define).collect());
        request
    }

    /// A plain answer.
    pub(crate) fn answer(text: &str) -> ModelAnswer {
        ModelAnswer {
            thinking: Vec::new(),
            text: text.to_owned(),
            calls: Vec::new(),
            usage: None,
            charged: None,
            finish: FinishReason::Stop,
            served_model: "test/model".into(),
        }
    }

    /// Goes on with the conversation: the model answered this, and its calls got these results.
    pub(crate) fn continue_with(request: &mut ModelRequest, answer: &ModelAnswer, results: &[(&str, bool)]) {
        let made = request.messages.len();
        let id = |at: usize| CallId::parse(&format!("call_{made}_{at}")).unwrap();
        let mut parts = Vec::new();
        if !answer.text.is_empty() {
            parts.push(Part::Text { text: answer.text.as_str().into(), labels: Labels::NONE });
        }
        parts.extend(answer.calls.iter().enumerate().map(|(at, RawCall { name, arguments, .. })| Part::Call {
            id: id(at),
            name: name.clone(),
            arguments: arguments.as_str().into(),
        }));
        request.messages.push(Message { role: Role::Assistant, parts });
        let results = results.iter().enumerate().map(|(at, (output, is_error))| Part::Result {
            id: id(at),
            name: answer.calls[at].name.clone(),
            output: (*output).into(),
            is_error: *is_error,
            labels: Labels::NONE,
            frame: None,
        });
        let parts: Vec<_> = results.collect();
        if !parts.is_empty() {
            request.messages.push(Message { role: Role::Tool, parts });
        }
    }

    #[test]
    fn a_note_about_what_was_left_out_is_not_what_a_person_said() {
        let mut request = request(&["hello"]);
        let text = "[4 earlier messages were left out to fit the window.]".into();
        request.messages[0].parts.insert(0, Part::Text { text, labels: Labels::NONE });
        assert_eq!(View::of(&request).user, "hello");
    }

    #[test]
    fn turns_and_steps_are_counted_from_the_last_thing_a_person_said() {
        let mut request = request(&["first"]);
        let mut called = answer("");
        called.calls.push(RawCall { id: None, name: "look".into(), arguments: "{}".into() });
        continue_with(&mut request, &called, &[("seen", false)]);
        continue_with(&mut request, &answer("done"), &[]);
        request.messages.push(Message::text(Role::User, "second"));
        assert_eq!(View::of(&request).turn, 1);
        assert!(View::of(&request).steps.is_empty());
        continue_with(&mut request, &called, &[("again", true)]);
        let view = View::of(&request);
        assert_eq!((view.turn, view.user.as_str(), view.steps.len()), (2, "second", 1));
        let outcome = view.latest().next().unwrap().result.clone().unwrap();
        assert!(outcome.is_error && outcome.output == "again");
        assert_eq!(view.newest_result(Some("look")).as_deref(), Some("again"));
        assert_eq!(view.newest_result(Some("other")), None);
    }
}
