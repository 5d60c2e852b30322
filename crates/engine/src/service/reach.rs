//! What an agent may do, asked beforehand: one action on one thing, and everything in a notebook. Answered by the guard that
//! judges its calls; nothing is changed and nothing is recorded.

use std::collections::BTreeMap;
use std::sync::Arc;

use adjutant_core::guard::arguments;
use adjutant_core::guard::judge::{
    Answer, Authority, Caller, Decision, Definition, Life, Question, Verdict, is_shown, judge,
};
use adjutant_core::guard::meta;
use adjutant_core::guard::path::NotePath;
use adjutant_core::guard::rule::Held;
use adjutant_core::guard::scope::{Action, Denied, Kind};
use adjutant_core::guard::survey::{Forbidden, Reached, Survey, SurveyChange};
use adjutant_core::id::{NotebookId, WorkspaceId};
use adjutant_core::label::Labels;
use adjutant_core::limits;
use adjutant_core::run::event::Effects;
use adjutant_core::tool::{Effect, Prepared, Target, ToolSpec, folder_hash};
use adjutant_tools::notebook::{Visit, Walked};
use adjutant_tools::{FileError, Notebook};
use serde_json::{Value, json};

use crate::current::CurrentAgent;
use crate::engine::Engine;
use crate::error::EngineError;

/// What is asked about.
#[derive(Debug, Clone, PartialEq)]
pub enum Wish {
    /// An action on a path of the notebook.
    Path {
        /// What is done.
        action: Action,
        /// What it is done to.
        path: String,
    },
    /// A call of a tool.
    Call {
        /// The tool.
        tool: String,
        /// Its arguments.
        arguments: Value,
    },
}

/// The answer to a wish.
#[derive(Debug, Clone, PartialEq)]
pub struct Can {
    /// What the guard says.
    pub verdict: Verdict,
    /// The tool it was asked for; none where no tool does this.
    pub tool: Option<String>,
}

/// What an agent reaches of a notebook.
#[derive(Debug, Clone, PartialEq)]
pub struct ReachReport {
    /// The notebook; none where the scope admits none.
    pub notebook: Option<String>,
    /// How much, with samples.
    pub survey: Survey,
    /// What the guard says to the first sample of each verb that has one.
    pub verdicts: BTreeMap<&'static str, Can>,
    /// Whether the notebook holds more than was looked at.
    pub cut: bool,
    /// What is different from an agent it was held against.
    pub change: Option<SurveyChange>,
}

/// The notebook that is asked about.
struct Open {
    id: NotebookId,
    slug: String,
    files: Arc<Notebook>,
}

/// What an agent's reach is held against.
#[derive(Clone, Copy)]
enum Beside<'a> {
    Nothing,
    Agent(&'a CurrentAgent),
}

impl Engine {
    /// What the guard would say to an agent that wants something, with the deciding rule and the smallest grant.
    ///
    /// # Errors
    /// When the agent or notebook cannot be opened.
    pub async fn can(
        &self,
        workspace: WorkspaceId,
        agent: &CurrentAgent,
        notebook: Option<NotebookId>,
        wish: &Wish,
    ) -> Result<Can, EngineError> {
        let open = self.open_for(workspace, agent, notebook).await?;
        let open = open.as_ref();
        match wish {
            Wish::Call { tool, arguments } => {
                let (tool, arguments) = inner(tool, arguments);
                let checked = self.checked(tool, arguments::accept(arguments.clone()));
                Ok(self.can_call(agent, open, tool, checked.as_ref().map_err(String::as_str)).await)
            }
            Wish::Path { action, path } => Ok(self.can_touch(agent, open, *action, path).await),
        }
    }

    /// Everything an agent reaches of a notebook.
    ///
    /// # Errors
    /// When the notebook cannot be opened or read.
    pub async fn reach(
        &self,
        workspace: WorkspaceId,
        agent: &CurrentAgent,
        notebook: Option<NotebookId>,
    ) -> Result<ReachReport, EngineError> {
        self.reach_beside(workspace, agent, notebook, Beside::Nothing).await
    }

    /// Everything an agent reaches of a notebook, and what of it another one did not reach, or reached beyond it.
    ///
    /// # Errors
    /// When the notebook cannot be opened or read.
    pub async fn reach_against(
        &self,
        workspace: WorkspaceId,
        agent: &CurrentAgent,
        before: &CurrentAgent,
        notebook: Option<NotebookId>,
    ) -> Result<ReachReport, EngineError> {
        self.reach_beside(workspace, agent, notebook, Beside::Agent(before)).await
    }

    async fn reach_beside(
        &self,
        workspace: WorkspaceId,
        agent: &CurrentAgent,
        notebook: Option<NotebookId>,
        beside: Beside<'_>,
    ) -> Result<ReachReport, EngineError> {
        let Some(open) = self.open_for(workspace, agent, notebook).await? else {
            let survey = Survey::default();
            return Ok(ReachReport { notebook: None, survey, verdicts: BTreeMap::new(), cut: false, change: None });
        };
        let reached = self.reach_of(agent, open.id);
        let before = match beside {
            Beside::Nothing => None,
            // Where it was not let into the notebook at all, everything is new.
            Beside::Agent(other) => {
                let admitted = other.scope.admits_notebook(&open.id.to_string(), &open.slug);
                Some(admitted.then(|| self.reach_of(other, open.id)))
            }
        };
        let walked = open
            .files
            .run(move |notebook| {
                let mut survey = Survey::default();
                let mut change = before.as_ref().map(|_| SurveyChange::default());
                let before = before.flatten();
                let mut add = |path: &NotePath, kind: Kind| {
                    survey.add(&reached, path, kind);
                    if let Some(change) = &mut change {
                        change.add(before.as_ref(), &reached, path, kind);
                    }
                };
                add(&NotePath::root(), Kind::Dir);
                let ended = notebook.walk(&NotePath::root(), limits::WALK_ENTRIES, &mut |entry| {
                    add(&entry.path, entry.kind);
                    Visit::Enter
                })?;
                Ok((survey, change, ended))
            })
            .await;
        let (survey, change, ended) =
            walked.map_err(|error| EngineError::Notebook { name: open.slug.clone(), why: error.to_string() })?;
        let mut verdicts = BTreeMap::new();
        for (verb, action, found) in [
            ("read", Action::Read, &survey.read),
            ("list", Action::List, &survey.list),
            ("write", Action::Write, &survey.write),
            ("delete", Action::Delete, &survey.delete),
        ] {
            if let Some(sample) = found.samples.first() {
                verdicts.insert(verb, self.can_touch(agent, Some(&open), action, sample).await);
            }
        }
        if let Some(folder) = survey.create.samples.first() {
            let path = format!("{}/new.md", folder.trim_end_matches('/'));
            verdicts.insert("create", self.can_touch(agent, Some(&open), Action::Create, &path).await);
        }
        Ok(ReachReport { notebook: Some(open.slug), survey, verdicts, cut: ended == Walked::Cut, change })
    }

    async fn open_for(
        &self,
        workspace: WorkspaceId,
        agent: &CurrentAgent,
        notebook: Option<NotebookId>,
    ) -> Result<Option<Open>, EngineError> {
        match self.choose_notebook(workspace, agent, notebook).await? {
            Some(id) => {
                let open = self.notebook(workspace, id).await?;
                Ok(Some(Open { id, slug: open.slug, files: open.files }))
            }
            None => Ok(None),
        }
    }

    /// What an agent reaches of a notebook: what is asked of the guard for one path, ready to be asked for many.
    fn reach_of(&self, agent: &CurrentAgent, notebook: NotebookId) -> Reached {
        let caller = self.anybody(agent, Some(notebook));
        let forbidden = |action: Action| match self.tool_for(agent, action) {
            Some((spec, argument)) => agent.rules.forbidden(&caller, spec.name(), &argument),
            None => Held::default(),
        };
        let forbidden = Forbidden {
            read: forbidden(Action::Read),
            list: forbidden(Action::List),
            write: forbidden(Action::Write),
            create: forbidden(Action::Create),
            delete: forbidden(Action::Delete),
        };
        Reached { scope: Arc::clone(&agent.scope), forbidden }
    }

    /// The agent in a chat and a run that no rule names.
    #[must_use]
    pub fn anybody(&self, agent: &CurrentAgent, notebook: Option<NotebookId>) -> Caller {
        let env = self.env();
        Caller { agent: agent.id, chat: env.id(), run: env.id(), notebook, now: env.now() }
    }

    /// A path is asked about as the tool that would touch it: one the agent has, if there is one.
    async fn can_touch(&self, agent: &CurrentAgent, open: Option<&Open>, action: Action, path: &str) -> Can {
        let Some((spec, argument)) = self.tool_for(agent, action) else { return without_tool(agent, action, path) };
        let arguments = json!({argument: path});
        // The one argument is made up here: the schema may want more of a real call.
        let can = self.can_call(agent, open, spec.name(), Ok(&arguments)).await;
        let is_folder = action == Action::Delete && can.verdict.decision != Decision::Deny;
        match (is_folder, open, NotePath::parse(path)) {
            (true, Some(open), Ok(path)) => match below(agent, &open.files, path).await {
                Some(denied) => Can { verdict: refused(denied), ..can },
                None => can,
            },
            (true | false, _, _) => can,
        }
    }

    /// The tool that does an action to one path, and the name of that argument. One that the agent has comes first, and
    /// the plainest of several.
    fn tool_for(&self, agent: &CurrentAgent, action: Action) -> Option<(&ToolSpec, String)> {
        let plain = |spec: &ToolSpec| match action {
            Action::Read | Action::List | Action::Copy => spec.effect == Effect::Read,
            Action::Write => spec.effect == Effect::Write,
            Action::Create => spec.effect == Effect::Create,
            Action::Delete | Action::Move => spec.effect == Effect::Delete,
            Action::Execute => spec.effect == Effect::Execute,
        };
        let does = |spec: &&ToolSpec| plain(spec) && spec.paths.values().any(|does| *does == action);
        let specs = || self.tools().iter().map(|tool| tool.spec()).filter(does);
        let favourite = |spec: &&ToolSpec| spec.name().split_once('_').is_some_and(|(verb, _)| verb == word(action));
        let held = || specs().filter(|spec| is_shown(&agent.config, spec));
        let best = held().find(favourite).or_else(|| held().next());
        let spec = best.or_else(|| specs().find(favourite)).or_else(|| specs().next())?;
        let argument = spec.paths.iter().find(|(_, does)| **does == action)?.0;
        Some((spec, argument.to_string()))
    }

    async fn can_call(
        &self,
        agent: &CurrentAgent,
        open: Option<&Open>,
        tool: &str,
        arguments: Result<&Value, &str>,
    ) -> Can {
        let spec = self.tools().get(tool).map(|tool| tool.spec());
        let prepared = match (spec, open, arguments) {
            (Some(spec), Some(open), Ok(arguments)) => Some(seen(spec, arguments, &open.files).await),
            (Some(_) | None, _, _) => None,
        };
        let verdict = judge(&Question {
            agent: &agent.config,
            scope: &agent.scope,
            tool,
            spec,
            arguments,
            prepared: prepared.as_ref(),
            life: Life::Running,
            definition: Definition::AsPinned,
            outside: &agent.outside,
            filter: &agent.filter,
            effects: Effects::Live,
            autonomy: None,
            notebook: open.is_some(),
            labels: Labels::NONE,
            caller: self.anybody(agent, open.map(|open| open.id)),
            rules: &agent.rules,
            authority: Authority::Acts,
            answer: Answer::None,
        });
        let verdict = agent.explained(tool, verdict);
        Can { verdict, tool: spec.map(|spec| spec.name().to_owned()) }
    }
}

/// The tool that is meant, and its arguments: `use_tool` is judged as what it calls (T1).
fn inner<'a>(tool: &'a str, arguments: &'a Value) -> (&'a str, &'a Value) {
    meta::inner(arguments).filter(|_| tool == meta::USE_TOOL).unwrap_or((tool, arguments))
}

/// The word of an action.
fn word(action: Action) -> &'static str {
    match action {
        Action::Read => "read",
        Action::List => "list",
        Action::Write => "write",
        Action::Create => "create",
        Action::Delete => "delete",
        Action::Execute => "execute",
        Action::Move => "move",
        Action::Copy => "copy",
    }
}

fn refused(denied: Denied) -> Verdict {
    Verdict::deny(denied.rule, denied.reason, denied.smallest_grant)
}

/// No tool of this instance does it: the scope may have its own reason why not.
fn without_tool(agent: &CurrentAgent, action: Action, path: &str) -> Can {
    let verdict = match NotePath::parse(path) {
        Err(bad) => Verdict::deny("invalid_path", bad.to_string(), None),
        Ok(path) => match agent.scope.check(action, &path, Kind::File, true) {
            Err(denied) => refused(denied),
            Ok(()) => Verdict::deny("tool", format!("No tool of this instance can {} a file.", word(action)), None),
        },
    };
    Can { verdict, tool: None }
}

/// What lies at the paths of a call now. What cannot be looked at counts as a file that is there.
async fn seen(spec: &ToolSpec, arguments: &Value, files: &Arc<Notebook>) -> Prepared {
    let mut target = BTreeMap::new();
    for touch in adjutant_core::guard::judge::touches(spec, arguments) {
        let Ok(path) = NotePath::parse(&touch.path) else { continue };
        let looked = files.run(move |notebook| notebook.metadata(&path)).await;
        let state = match looked {
            Ok(entry) if entry.kind == Kind::Dir => Some(folder_hash()),
            Err(FileError::NotFound) if spec.effect != Effect::Read => None,
            Ok(_) | Err(_) => Some(adjutant_core::content::Hash::of(touch.path.as_bytes())),
        };
        target.insert(touch.path, state);
    }
    Prepared { target: Target(target), ..Prepared::default() }
}

/// The first thing below a folder that may not be deleted (P15).
async fn below(agent: &CurrentAgent, files: &Arc<Notebook>, path: NotePath) -> Option<Denied> {
    let scope = Arc::clone(&agent.scope);
    let found = files.run(move |notebook| {
        if notebook.metadata(&path)?.kind != Kind::Dir {
            return Ok(None);
        }
        let mut contents = Vec::new();
        notebook.walk(&path, limits::WALK_ENTRIES, &mut |entry| {
            contents.push((entry.path.clone(), entry.kind));
            Visit::Enter
        })?;
        Ok(scope.check_delete_tree(&path, contents.iter().map(|(path, kind)| (path, *kind))).err())
    });
    found.await.ok().flatten()
}
