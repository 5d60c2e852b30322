//! `audit erase`: forget what was said in runs that have ended. Chains still verify, and the runs stay on the list.

use adjutant_core::audit::filter::moment;
use adjutant_engine::EraseWhat;
use serde_json::json;

use crate::cli::Context;
use crate::cli::find;
use crate::cli::words::{count, short};
use crate::failure::{Exit, Failure, sentence};
use crate::instance::Instance;

#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["before", "run"])))]
pub(super) struct Args {
    /// Runs that ended before this: 90d ago, a day, or a time
    #[arg(long, value_name = "DATE")]
    before: Option<String>,
    /// This run, or as much of its id as no other has
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// Do it; without, only say what would be erased
    #[arg(long)]
    yes: bool,
}

pub(super) async fn execute(context: &Context, instance: &Instance, args: Args) -> Result<Exit, Failure> {
    let (engine, home) = (&instance.engine, instance.home);
    let what = match (&args.run, &args.before) {
        (Some(run), _) => EraseWhat::Run(find::run(instance, run).await?),
        (None, Some(text)) => {
            let before = moment(text, engine.env().now()).map_err(|why| Failure::usage(sentence(&why)))?;
            EraseWhat::Before(before)
        }
        (None, None) => return Err(Failure::usage("Say which: --before DATE or --run ID.")),
    };
    let report = if args.yes {
        engine.erase_runs(home.workspace, home.user, what).await?
    } else {
        engine.erasable(home.workspace, what).await?
    };
    let document = json!({"erased": args.yes, "runs": report.runs, "bodies": report.bodies, "open": report.open});
    let style = context.terminal.out;
    context.print(&document, || {
        let runs = count(report.runs.len(), "run", "runs");
        let mut lines = match (report.runs.is_empty(), args.yes) {
            (true, _) => vec!["Nothing is left to erase.".to_owned()],
            (false, true) => {
                vec![style.good(&format!("✔ what was said in {runs} is erased ({} events)", report.bodies))]
            }
            (false, false) => {
                vec![format!("What was said in {runs} would be erased, for good. Nothing was done; --yes does it.")]
            }
        };
        let open = |run: &adjutant_core::id::RunId| style.dim(&format!("= {} has not ended and stays", short(run)));
        lines.extend(report.open.iter().map(open));
        lines
    });
    Ok(Exit::Done)
}
