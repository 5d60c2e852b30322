//! What the model saw in one of its calls, made again from the log: nothing of a request is stored but its hash.

use adjutant_core::content::Hash;
use adjutant_core::id::{RunId, WorkspaceId};
use adjutant_core::message::{Message, ModelRequest, Part, Role, told};
use adjutant_core::run::event::{Event, ModelAnswered, ModelFailed};
use adjutant_core::run::state::State;
use adjutant_core::run::transcript;
use adjutant_models::tokens::Counter;
use serde::Serialize;

use crate::asking::tool_definitions;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::log::{Recorded, RunLog, texts};

/// A request to a model, made again.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SeenRequest {
    /// The number of the call, from 1.
    pub n: usize,
    /// The turn.
    pub turn: u32,
    /// The attempt at it.
    pub attempt: u32,
    /// The model that was asked.
    pub model: String,
    /// The recorded hash of the request.
    pub request_hash: Hash,
    /// Whether what is shown has that hash: it is what was sent, to the last byte.
    pub same: bool,
    /// Bytes of old content that were left out to fit the window.
    pub dropped_bytes: u64,
    /// Output tokens at the most.
    pub max_tokens: u32,
    /// How large its parts are.
    pub sizes: SeenSizes,
    /// The system prompt.
    pub system: String,
    /// The tools it was shown, by name.
    pub tools: Vec<String>,
    /// The conversation.
    pub messages: Vec<SeenMessage>,
    /// What went over the wire (`>`) and what came (`<`), where the run kept it and it is asked for: without keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<String>,
}

/// Whether what went over the wire is shown, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frames {
    /// As far as the run kept it.
    Shown,
    /// It is left out.
    LeftOut,
}

/// How large the parts of a request are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SeenSizes {
    /// Bytes of the system prompt.
    pub system_bytes: u64,
    /// Bytes of the tool definitions.
    pub tools_bytes: u64,
    /// Bytes of the conversation.
    pub messages_bytes: u64,
    /// About how many tokens the system prompt is.
    pub system_tokens: u64,
    /// About how many the tool definitions are.
    pub tools_tokens: u64,
    /// About how many the conversation is.
    pub messages_tokens: u64,
    /// About how many tokens it is in all, with what stands between its parts.
    pub estimated_tokens: u64,
    /// Whether the texts are counted by the tokenizer of the model, and not by what its provider has counted lately.
    pub exact: bool,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeenMessage {
    /// `user`, `assistant` or `tool`.
    pub role: Role,
    /// Its parts, in order.
    pub parts: Vec<SeenPart>,
}

/// One part of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeenPart {
    /// `text`, `image`, `thinking`, `call` or `result`.
    pub kind: &'static str,
    /// The tool, for a call or a result.
    pub tool: Option<String>,
    /// Its text; of an image only what it is.
    pub text: String,
    /// Its bytes.
    pub bytes: u64,
    /// About how many tokens it is; none of an image, which is no text.
    pub tokens: u64,
}

impl Engine {
    /// What the model saw in a call of a run, by the number of the call, from 1.
    ///
    /// # Errors
    /// When there is no such run or call, or its log cannot be followed.
    pub async fn seen(
        &self,
        workspace: WorkspaceId,
        run: RunId,
        n: usize,
        frames: Frames,
    ) -> Result<SeenRequest, EngineError> {
        let log = RunLog::load(self.store(), self.env(), workspace, run).await?;
        let start = log.state.start.as_ref().ok_or_else(|| EngineError::not_found("run", run))?;
        let base = self.base_messages(workspace, start.base, start.limits.context_bytes).await?;
        let tools = tool_definitions(self, &log).await?;
        let mut state = State::default();
        let mut count = 0;
        let recorded = self.recorded(workspace, run, 0, None).await?;
        for (at, item) in recorded.iter().enumerate() {
            if let Event::ModelRequested(asked) = &item.event {
                count += 1;
                if count == n {
                    let (mut request, dropped) = transcript::request(&state, &base, &tools)
                        .map_err(|overflow| EngineError::BadLog { run, why: overflow.to_string() })?;
                    let hash = request.hash();
                    let loaded = texts(self.store(), workspace, &request.missing()).await?;
                    request.fill(&loaded);
                    let same = hash == asked.request;
                    if same {
                        self.learn_again(&request, &recorded[at..]);
                    }
                    let model = request.model.clone();
                    let seen = self.counted(&model, move |counter| shown(&request, counter)).await;
                    let frames = match frames {
                        Frames::Shown => self.frames(workspace, &recorded[at..]).await?,
                        Frames::LeftOut => None,
                    };
                    let (turn, attempt, request_hash) = (asked.turn, asked.attempt, asked.request);
                    return Ok(SeenRequest {
                        n,
                        turn,
                        attempt,
                        request_hash,
                        same,
                        dropped_bytes: dropped,
                        frames,
                        ..seen
                    });
                }
            }
            state.apply(&item.event, item.seq, item.at).map_err(|bad| EngineError::impossible(run, &bad))?;
        }
        Err(EngineError::not_found("model call", n))
    }

    /// The conversation up to the end of a run, as a model would be given it: as far back as its window reaches. Pictures are not
    /// loaded.
    ///
    /// # Errors
    /// When there is no such run, or its log cannot be followed.
    pub async fn conversation(&self, workspace: WorkspaceId, run: RunId) -> Result<Vec<Message>, EngineError> {
        let state = self.run_state(workspace, run).await?;
        let start = state.start.as_ref().ok_or_else(|| EngineError::not_found("run", run))?;
        let base = self.base_messages(workspace, start.base, start.limits.context_bytes).await?;
        let mut messages = transcript::conversation(&state, &base);
        let parts = messages.iter_mut().flat_map(|message| &mut message.parts);
        let mut contents: Vec<_> =
            parts.filter(|part| !matches!(part, Part::Image { .. })).map(Part::content_mut).collect();
        self.load_texts(workspace, &mut contents).await?;
        Ok(messages)
    }

    /// Learns how many tokens a request was from the answer among these events, where this process has heard none of its model.
    fn learn_again(&self, request: &ModelRequest, recorded: &[Recorded]) {
        let answered = recorded.iter().find_map(|item| match &item.event {
            Event::ModelAnswered(answered) if !answered.estimated => Some(answered.usage.input),
            _ => None,
        });
        if let Some(counted) = answered.filter(|_| !self.ratios().knows(&request.model)) {
            self.ratios().learn(&request.model, request, counted);
        }
    }

    /// What went over the wire in the model call that these events begin with, if it was kept and not forgotten since.
    async fn frames(&self, workspace: WorkspaceId, recorded: &[Recorded]) -> Result<Option<String>, EngineError> {
        let ended = recorded.iter().find_map(|item| match &item.event {
            Event::ModelAnswered(ModelAnswered { frames, .. }) | Event::ModelFailed(ModelFailed { frames, .. }) => {
                Some(frames.clone())
            }
            _ => None,
        });
        let Some(mut frames) = ended.flatten() else { return Ok(None) };
        if let Some(hash) = frames.missing()
            && let Some(text) = texts(self.store(), workspace, &[hash]).await?.get(&hash)
        {
            frames.fill(text);
        }
        Ok(frames.loaded().map(ToString::to_string))
    }
}

fn shown(request: &ModelRequest, counter: Counter) -> SeenRequest {
    let tools_bytes = serde_json::to_vec(&*request.tools).map_or(0, |bytes| bytes.len() as u64);
    let parts = request.messages.iter().flat_map(|message| &message.parts);
    let (system_bytes, messages_bytes) = (request.system.len(), parts.map(|part| part.content().len()).sum::<u64>());
    let messages: Vec<_> = request.messages.iter().map(|one| message(one, counter)).collect();
    let sizes = SeenSizes {
        system_bytes,
        tools_bytes,
        messages_bytes,
        system_tokens: counter.text(&request.system.text()),
        tools_tokens: counter.tools(request),
        messages_tokens: messages.iter().flat_map(|message| &message.parts).map(|part| part.tokens).sum(),
        estimated_tokens: counter.request(request),
        exact: counter.is_exact(),
    };
    SeenRequest {
        n: 0,
        turn: 0,
        attempt: 0,
        model: request.model.clone(),
        request_hash: Hash::ZERO,
        same: false,
        dropped_bytes: 0,
        max_tokens: request.max_tokens,
        sizes,
        system: request.system.text().into_owned(),
        tools: request.tools.iter().map(|tool| tool.name.clone()).collect(),
        messages,
        frames: None,
    }
}

fn message(message: &Message, counter: Counter) -> SeenMessage {
    SeenMessage { role: message.role, parts: message.parts.iter().map(|one| part(one, counter)).collect() }
}

fn part(part: &Part, counter: Counter) -> SeenPart {
    let framed = if let Part::Result { frame: Some(frame), .. } = part { frame.len() } else { 0 };
    let bytes = part.content().len() + framed;
    let text = || part.content().text().into_owned();
    let (kind, tool, text) = match part {
        Part::Text { .. } => ("text", None, text()),
        Part::Image { media_type, .. } => ("image", None, media_type.clone()),
        Part::Thinking { .. } => ("thinking", None, text()),
        Part::Call { name, .. } => ("call", Some(name.clone()), text()),
        Part::Result { name, output, frame, .. } => {
            ("result", Some(name.clone()), told(output, frame.as_deref()).into_owned())
        }
    };
    SeenPart { kind, tool, text, bytes, tokens: counter.part(part) }
}
