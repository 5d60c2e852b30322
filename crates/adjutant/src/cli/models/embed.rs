//! `models embed`: the vectors of texts, one line each.

use adjutant_core::money::MicroUsd;
use serde_json::json;

use super::super::place::Place;
use super::super::words::count;
use super::super::{Context, output};
use crate::failure::{Exit, Failure};
use crate::wire::{self, EmbeddingList, EmbeddingsAsk, EmbeddingsInput, EmbeddingsPurpose};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The model, as in openai/text-embedding-3-small
    model: String,
    /// The texts
    #[arg(required = true, value_name = "TEXT")]
    texts: Vec<String>,
    /// They are questions that find texts, not texts to be found
    #[arg(long)]
    query: bool,
}

pub(super) async fn embed(context: &Context, place: &Place, args: Args) -> Result<Exit, Failure> {
    let Args { model, texts, query } = args;
    let purpose = if query { EmbeddingsPurpose::Query } else { EmbeddingsPurpose::Document };
    let mut ask = EmbeddingsAsk { model, input: EmbeddingsInput::Several(texts), purpose, workspace_id: None };
    let made: EmbeddingList = match place {
        Place::Here(instance) => {
            let home = &instance.home;
            wire::embeddings(instance.engine.embed(home.workspace, home.user, ask.into()).await?)
        }
        Place::There(remote) => {
            ask.workspace_id = Some(remote.only_workspace().await?);
            remote.read(remote.post(&["embeddings"], &json!(ask)).await?)?
        }
    };
    context.print(&json!(made), || made.data.iter().map(|line| json!(line.embedding).to_string()).collect());
    if !context.json {
        let about = if made.estimated { "about " } else { "" };
        let cost = made.cost_microusd.map_or_else(|| "price not known".to_owned(), |cost| MicroUsd(cost).to_string());
        let tokens = count(usize::try_from(made.tokens).unwrap_or(usize::MAX), "token", "tokens");
        output::tell(&format!("{} numbers each · {about}{tokens} · {cost}", made.dimensions));
    }
    Ok(Exit::Done)
}
