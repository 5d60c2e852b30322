//! `models default`: the model of your runs whose agent leaves it to the default, or of the runs of a chat.

use adjutant_core::id::ChatId;
use adjutant_core::routing::DEFAULT;
use adjutant_engine::{ChatChange, EngineError};
use serde_json::{Value, json};

use crate::cli::Context;
use crate::cli::place::Place;
use crate::cli::terminal::clean;
use crate::failure::{Exit, Failure};
use crate::instance::Instance;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The model, as in anthropic/claude-haiku-4-5; `default` puts back what counts without it
    model: Option<String>,
    /// For the runs of this chat, whatever its agent says
    #[arg(long, value_name = "ID")]
    chat: Option<String>,
}

pub(super) async fn execute(context: &Context, place: &Place, args: Args) -> Result<Exit, Failure> {
    let model = match (place, &args.chat) {
        (Place::Here(instance), None) => of_person(instance, args.model.as_deref()).await?,
        (Place::Here(instance), Some(chat)) => of_chat(instance, chat, args.model).await?,
        (Place::There(remote), None) => {
            let me = match &args.model {
                Some(model) => remote.patch(&["me"], &json!({"default_model": model})).await?,
                None => remote.get(&["me"], &[]).await?,
            };
            named(&me["default_model"])
        }
        (Place::There(remote), Some(chat)) => {
            let chat = match &args.model {
                Some(model) => remote.patch(&["chats", chat], &json!({"model": model})).await?,
                None => remote.get(&["chats", chat], &[]).await?,
            };
            named(&chat["model"])
        }
    };
    context.print(&json!({"default_model": model}), || vec![clean(&model)]);
    Ok(Exit::Done)
}

fn named(model: &Value) -> String {
    model.as_str().unwrap_or(DEFAULT).to_owned()
}

async fn of_person(instance: &Instance, model: Option<&str>) -> Result<String, Failure> {
    let (engine, user) = (&instance.engine, instance.home.user);
    let own = match model {
        Some(model) => engine.set_default_model(user, model).await?,
        None => engine.store().default_model(user).await?,
    };
    Ok(own.unwrap_or_else(|| DEFAULT.to_owned()))
}

async fn of_chat(instance: &Instance, name: &str, model: Option<String>) -> Result<String, Failure> {
    let missing = || EngineError::NotFound { what: "chat", name: name.to_owned() };
    let id: ChatId = name.parse().map_err(|_| missing())?;
    let chat = instance.engine.store().chat(instance.home.workspace, id).await?;
    let chat = chat.ok_or_else(missing)?;
    let change = ChatChange { model, ..ChatChange::default() };
    let own = if change.model.is_some() {
        instance.engine.change_chat(instance.home.user, &chat, change).await?.model
    } else {
        chat.model
    };
    Ok(own.unwrap_or_else(|| DEFAULT.to_owned()))
}
