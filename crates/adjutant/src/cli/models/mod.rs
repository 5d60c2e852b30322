//! `models`: what can be used here, what it costs, and why a strategy would choose which.

mod default;
mod embed;
mod take;

use adjutant_core::money::MicroUsd;
use adjutant_core::options::{Abilities, Ability};
use adjutant_core::routing::Strategy;
use adjutant_engine::models::Offer;
use adjutant_engine::models::router::Needs;

use super::place::{Place, Work};
use super::terminal::{Style, clean, table};
use super::{Context, Noun};
use crate::failure::{Exit, Failure};
use crate::instance::Instance;
use crate::suggest;
use crate::wire::{self, Explained, ModelLine, ModelList, RankedModel};

pub(super) type Args = Noun<Command>;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// List the models that can be used here
    Ls {
        /// Only those whose name holds this
        word: Option<String>,
    },
    /// Show one model in full
    Show {
        /// Its name, as in anthropic/claude-haiku-4-5
        model: String,
    },
    /// Say which model a strategy would choose now, and why
    Explain(Question),
    /// Show or set the model of your runs whose agent leaves it to the default, or of a chat
    Default(default::Args),
    /// Make vectors of texts and print them, one line each
    Embed(embed::Args),
    /// Lay a document in the form of models.dev over the built-in catalog
    Sync {
        /// The document, JSON: a file, or an https:// address
        #[arg(value_name = "FILE|URL")]
        source: String,
    },
    /// Ask a provider which models it has, and know those, too
    Refresh {
        /// The provider [default: every one that is configured]
        provider: Option<String>,
    },
}

#[derive(Debug, clap::Args)]
pub(super) struct Question {
    /// cheapest, fastest, smartest, balanced or fallback
    #[arg(default_value = "balanced")]
    strategy: String,
    /// Tokens of input that are expected
    #[arg(long, default_value_t = 4000)]
    input: u64,
    /// Tokens of output that are expected
    #[arg(long, default_value_t = 1000)]
    output: u64,
    /// It has to see images
    #[arg(long)]
    images: bool,
    /// It has to be able to keep to a schema itself
    #[arg(long)]
    structured: bool,
    /// It has to reason
    #[arg(long)]
    reasoning: bool,
}

impl Question {
    /// What it has to be able to do beside calling tools.
    fn abilities(&self) -> Abilities {
        let asked = [
            (self.images, Ability::Images),
            (self.structured, Ability::Structured),
            (self.reasoning, Ability::Reasoning),
        ];
        asked.into_iter().filter(|(asked, _)| *asked).map(|(_, ability)| ability).collect()
    }
}

pub(super) async fn execute(context: &Context, args: Args) -> Result<Exit, Failure> {
    let place = Place::find(context, "models", Work::Looks).await?;
    let exit = match args.command.unwrap_or(Command::Ls { word: None }) {
        Command::Ls { word } => ls(context, &place, word.as_deref()).await,
        Command::Show { model } => show(context, &place, &model).await,
        Command::Explain(question) => explain(context, &place, &question).await,
        Command::Default(args) => default::execute(context, &place, args).await,
        Command::Embed(args) => embed::embed(context, &place, args).await,
        Command::Sync { source } => take::sync(context, &place, &source).await,
        Command::Refresh { provider } => take::refresh(context, &place, provider.as_deref()).await,
    };
    place.close().await;
    exit
}

async fn list(place: &Place) -> Result<ModelList, Failure> {
    match place {
        Place::Here(instance) => Ok(wire::models(instance.engine.default_model(), &offers(instance).await?)),
        Place::There(remote) => remote.read(remote.get(&["models"], &[]).await?),
    }
}

/// The operator's models, and those that keys open in this workspace.
async fn offers(instance: &Instance) -> Result<Vec<Offer>, Failure> {
    Ok(instance.engine.offers([instance.home.workspace], instance.home.user).await?)
}

fn price(usd: Option<f64>) -> String {
    usd.map_or_else(|| "?".to_owned(), |usd| format!("{usd}"))
}

async fn ls(context: &Context, place: &Place, word: Option<&str>) -> Result<Exit, Failure> {
    let mut list = list(place).await?;
    list.data.retain(|model| word.is_none_or(|word| model.id.contains(word)));
    context.print(&serde_json::to_value(&list).unwrap_or_default(), || {
        let style = context.terminal.out;
        let mut lines = vec![none(word, &list.default_model)];
        if !list.data.is_empty() {
            let row = |model: &ModelLine| {
                let window = model.context_window.map_or_else(|| "?".to_owned(), |size| format!("{}k", size / 1000));
                let (input, output) = (price(model.prices.input_usd), price(model.prices.output_usd));
                let key = if model.by_key { "a key" } else { "" };
                let grade = model.grade.to_string();
                let can = match &model.retired_on {
                    Some(day) if model.retired => format!("retired {day}"),
                    Some(_) | None => model.abilities.join(" "),
                };
                vec![clean(&model.id), window, input, output, grade, key.to_owned(), can]
            };
            let cells: Vec<_> = list.data.iter().map(row).collect();
            lines = table(&["MODEL", "WINDOW", "IN $/M", "OUT $/M", "GRADE", "OPENED BY", "CAN"], &cells, style);
        }
        lines.push(style.dim(&format!("default: {}", clean(&list.default_model))));
        lines
    });
    Ok(Exit::Done)
}

/// Why nothing is listed.
fn none(word: Option<&str>, default: &str) -> String {
    match word {
        Some(_) => "No model of a configured provider is known by that name.".to_owned(),
        // A script answers to every name, so there is no list of them.
        None if default != "demo/guide" => {
            "No model is known by name; the default can be used all the same.".to_owned()
        }
        None => "No provider is configured but the built-in one, demo/guide.".to_owned(),
    }
}

async fn show(context: &Context, place: &Place, name: &str) -> Result<Exit, Failure> {
    let list = list(place).await?;
    let Some(model) = list.data.iter().find(|model| model.id == name) else {
        let names: Vec<_> = list.data.iter().map(|model| model.id.as_str()).collect();
        return Err(Failure::not_found(format!("There is no model `{name}` here, {}", suggest::advice(name, &names))));
    };
    let shown = serde_json::to_value(model).unwrap_or_default();
    context.print(&shown, || vec![clean(&serde_json::to_string_pretty(&shown).unwrap_or_default())]);
    Ok(Exit::Done)
}

async fn explain(context: &Context, place: &Place, question: &Question) -> Result<Exit, Failure> {
    let word = question.strategy.as_str();
    let Some(strategy) = Strategy::of(word) else {
        let known = Strategy::ALL.map(Strategy::word);
        return Err(Failure::usage(format!("There is no strategy `{word}`, {}", suggest::advice(word, &known))));
    };
    let choice: Explained = match place {
        Place::Here(instance) => {
            let (input, output) = (question.input, question.output);
            let needs = Needs { tools: true, input, output, ..Needs::default() }.and(&question.abilities());
            wire::explained(&offers(instance).await?, &needs, strategy)
        }
        Place::There(remote) => {
            let (input, output) = (question.input.to_string(), question.output.to_string());
            let words: Vec<_> = question.abilities().into_iter().map(Ability::word).collect();
            let requires = words.join(",");
            let query = [("strategy", word), ("input", &input), ("output", &output), ("requires", &requires)];
            remote.read(remote.get(&["models", "explain"], &query).await?)?
        }
    };
    context.print(&serde_json::to_value(&choice).unwrap_or_default(), || reasons(&choice, context.terminal.out));
    Ok(if choice.model.is_some() { Exit::Done } else { Exit::Other })
}

fn reasons(choice: &Explained, style: Style) -> Vec<String> {
    let row = |ranked: &RankedModel| {
        let cost = ranked.cost_microusd.map_or_else(|| "?".to_owned(), |cost| MicroUsd(cost).to_string());
        let first = ranked.first_piece_ms.map_or_else(|| "?".to_owned(), |ms| format!("{ms} ms"));
        vec![clean(&ranked.model), ranked.grade.to_string(), cost, first]
    };
    let mut lines = match &choice.model {
        Some(model) => vec![format!("{} chooses {}", choice.strategy, clean(model))],
        None => vec!["Nothing fits; configure a provider, or expect fewer tokens.".to_owned()],
    };
    if !choice.ranked.is_empty() {
        let cells: Vec<_> = choice.ranked.iter().map(row).collect();
        lines.extend(table(&["MODEL", "GRADE", "COST AT MOST", "FIRST PIECE"], &cells, style));
    }
    let left_out = choice.left_out.iter().map(|left| match left.lacks.as_str() {
        "retired" => format!("{}: its provider does not serve it any more", clean(&left.model)),
        lacks => format!("{}: lacks {lacks}", clean(&left.model)),
    });
    lines.extend(left_out.map(|line| style.dim(&line)));
    lines
}
