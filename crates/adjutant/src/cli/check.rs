//! `check`: judges cases offline with the code that judges real calls, one JSON line a case. Opens no data directory and no
//! connection; `paths` works in a temporary folder.

use std::io::{BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};

use adjutant_core::guard::check::calls::Stage;
use adjutant_core::guard::check::world::World;
use adjutant_core::guard::check::{BadCase, CaseKind, check, paths, read_line, read_turn};
use adjutant_engine::tools::Trial;
use serde_json::{Value, json};

use super::Context;
use super::output::{say, tell};
use crate::failure::{Exit, Failure};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What the cases are about
    kind: Kind,
    /// The file of cases, one JSON object a line; `-` is standard input
    #[arg(long, value_name = "FILE", default_value = "-")]
    jsonl: PathBuf,
    /// The agent, tools and limits that turns are judged in (for `calls`)
    #[arg(long, value_name = "FILE")]
    world: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// Actions on paths of a notebook
    Paths,
    /// Requests to the web
    Urls,
    /// Turns of a model
    Calls,
    /// Texts with and without secrets
    Redact,
    /// Texts that mention agents
    Mentions,
    /// Schedules
    Cron,
}

/// How one case is judged.
enum Judge {
    Text(CaseKind),
    Paths { temporary: PathBuf },
    Calls(Box<Stage>),
}

pub(super) fn execute(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let judge = judge_of(args, context.env.temporary_folder())?;
    let reader = source(&args.jsonl)?;
    let (mut judged, mut wrong) = (0_usize, 0_usize);
    for (index, line) in reader.split(b'\n').enumerate() {
        let line = line.map_err(|error| {
            Failure::other(format!("The cases cannot be read any further: {error}. {judged} were judged."))
        })?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let answer = judge.answer(&line, index).unwrap_or_else(
            |bad| json!({"id": Value::Null, "line": index + 1, "error": bad.to_string(), "pass": false}),
        );
        judged += 1;
        wrong += usize::from(answer.get("pass") == Some(&Value::Bool(false)));
        say(&ascii(&answer));
    }
    if wrong > 0 {
        tell(&format!("{wrong} of {judged} cases are not judged as they expect"));
    }
    Ok(if wrong == 0 { Exit::Done } else { Exit::Other })
}

fn judge_of(args: &Args, temporary: PathBuf) -> Result<Judge, Failure> {
    if args.world.is_some() && args.kind != Kind::Calls {
        return Err(Failure::usage("Only `check calls` takes a world; nothing was judged."));
    }
    Ok(match args.kind {
        Kind::Paths => Judge::Paths { temporary },
        Kind::Urls => Judge::Text(CaseKind::Urls),
        Kind::Redact => Judge::Text(CaseKind::Redact),
        Kind::Mentions => Judge::Text(CaseKind::Mentions),
        Kind::Cron => Judge::Text(CaseKind::Cron),
        Kind::Calls => {
            let path = args.world.as_ref().ok_or_else(|| {
                Failure::usage("`check calls` judges turns in a world, and none is named.").hint("add --world FILE")
            })?;
            Judge::Calls(Box::new(stage(path)?))
        }
    })
}

fn stage(path: &Path) -> Result<Stage, Failure> {
    let bad = |why: String| {
        Failure::usage(format!("The world {} cannot be used: {why}. Nothing was judged.", path.display()))
    };
    let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
    let world: World = serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?;
    Stage::new(world).map_err(|error| bad(error.0))
}

fn source(path: &Path) -> Result<Box<dyn BufRead>, Failure> {
    if path == Path::new("-") {
        if std::io::stdin().is_terminal() {
            return Err(Failure::usage("There are no cases to judge.").hint("name a file with --jsonl FILE"));
        }
        return Ok(Box::new(BufReader::new(std::io::stdin())));
    }
    let file = std::fs::File::open(path)
        .map_err(|error| Failure::usage(format!("{} cannot be read: {error}. Nothing was judged.", path.display())))?;
    Ok(Box::new(BufReader::new(file)))
}

impl Judge {
    fn answer(&self, line: &[u8], number: usize) -> Result<Value, BadCase> {
        let line = std::str::from_utf8(line).map_err(|_| BadCase("it is not UTF-8".to_owned()))?;
        match self {
            Self::Text(kind) => check(*kind, &read_line(line)?),
            Self::Calls(stage) => stage.check(&read_turn(line)?),
            Self::Paths { temporary } => {
                let case = read_line(line)?;
                let trial = Trial::new(temporary, number)
                    .map_err(|error| BadCase(format!("no tree can be built in {}: {error}", temporary.display())))?;
                paths::check_with(&case, |case| trial.judge(case))
            }
        }
    }
}

/// JSON without a character beyond ASCII: cases are about texts that break lines and terminals.
fn ascii(value: &Value) -> String {
    let mut line = String::new();
    for letter in value.to_string().chars() {
        if letter.is_ascii() {
            line.push(letter);
            continue;
        }
        let mut units = [0; 2];
        for unit in letter.encode_utf16(&mut units) {
            line.push_str(&format!("\\u{unit:04x}"));
        }
    }
    line
}
