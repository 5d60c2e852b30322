//! `keys`: keys of providers that people bring. A value is read from standard input or asked for, never from the command line,
//! where others could see it, and it is never printed.

mod master;

use std::io::{IsTerminal, Read};

use adjutant_core::id::KeyId;
use adjutant_engine::store::row::UsageFilter;
use adjutant_engine::{GroupBy, Interval, KeyOwner, NewKey};
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::place::{Place, Work};
use super::remote::Remote;
use super::terminal::{clean, table};
use super::words::{ours, short};
use super::{Context, Noun, prompt};
use crate::failure::{Exit, Failure};
use crate::instance::Instance;
use crate::wire::{self, KeyLine, KeyList, KeyTested};

/// Bytes that are read of a key.
const KEY_BYTES: usize = 8192;

pub(super) type Args = Noun<Command>;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// List the keys there are, by their last four characters
    Ls,
    /// Keep a key: it is read from standard input, or asked for
    Add(New),
    /// Give a key another value; with --master, replace the key that seals the database
    Rotate {
        /// The key, or as much of its id as no other has
        #[arg(required_unless_present = "master", conflicts_with = "master")]
        id: Option<String>,
        /// Replace the master key; every node has to be stopped
        #[arg(long)]
        master: bool,
        /// The new master key, 64 hexadecimal digits, where the old one comes from ADJUTANT_SECRET_KEY
        #[arg(long, value_name = "FILE", requires = "master")]
        to: Option<std::path::PathBuf>,
    },
    /// Forget a key
    Rm {
        /// The key, or as much of its id as no other has
        id: String,
    },
    /// See whether a key is good: a model is asked for a word
    Test {
        /// The key, or as much of its id as no other has
        id: String,
        /// The model to ask [default: the cheapest of the provider]
        #[arg(long)]
        model: Option<String>,
    },
}

#[derive(Debug, clap::Args)]
pub(super) struct New {
    /// The provider it is for, as in openai
    provider: String,
    /// What you call it
    #[arg(long, default_value = "default")]
    name: String,
    /// For this agent alone
    #[arg(long, value_name = "AGENT", conflicts_with = "mine")]
    agent: Option<String>,
    /// For your own runs alone, instead of the workspace's
    #[arg(long)]
    mine: bool,
    /// A host it may go to; may be given several times [default: that of the provider]
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,
}

pub(super) async fn execute(context: &Context, args: Args) -> Result<Exit, Failure> {
    let command = args.command.unwrap_or(Command::Ls);
    if let Command::Rotate { id: None, to, .. } = &command {
        return master::rotate(context, to.as_deref()).await;
    }
    let place = Place::find(context, "keys", Work::Looks).await?;
    let exit = match command {
        Command::Ls => ls(context, &place).await,
        Command::Add(new) => add(context, &place, new).await,
        Command::Rotate { id, .. } => rotate(context, &place, &id.unwrap_or_default()).await,
        Command::Rm { id } => rm(context, &place, &id).await,
        Command::Test { id, model } => test(context, &place, &id, model).await,
    };
    place.close().await;
    exit
}

async fn list(place: &Place) -> Result<Vec<KeyLine>, Failure> {
    match place {
        Place::Here(instance) => {
            let (engine, workspace) = (&instance.engine, instance.home.workspace);
            let usage = engine.usage(workspace, &UsageFilter::default(), GroupBy::Key, Interval::Whole).await?;
            let rows = engine.store().provider_keys(workspace).await?;
            Ok(rows.into_iter().map(|row| wire::key(row, &usage)).collect())
        }
        Place::There(remote) => {
            let list: KeyList = remote.read(remote.get(&["provider-keys"], &[]).await?)?;
            Ok(list.data)
        }
    }
}

async fn ls(context: &Context, place: &Place) -> Result<Exit, Failure> {
    let list = KeyList { data: list(place).await? };
    context.print(&serde_json::to_value(&list).unwrap_or_default(), || {
        if list.data.is_empty() {
            return vec![ours("No keys are kept.  adjutant keys add openai")];
        }
        let row = |key: &KeyLine| {
            let (id, hint, name) = (short(&key.id), format!("…{}", key.hint), clean(&key.name));
            vec![id, key.provider.clone(), name, key.owner.clone(), hint, key.hosts.join(" "), key.calls.to_string()]
        };
        let cells: Vec<_> = list.data.iter().map(row).collect();
        table(&["ID", "PROVIDER", "NAME", "OWNER", "KEY", "GOES TO", "CALLS"], &cells, context.terminal.out)
    });
    Ok(Exit::Done)
}

/// The key, from standard input or from whoever sits there.
async fn value(context: &Context) -> Result<SecretString, Failure> {
    let input = std::io::stdin();
    // As long as it may become from the start: a text that grows leaves what it was behind.
    let mut text = Zeroizing::new(String::with_capacity(KEY_BYTES));
    if input.is_terminal() && context.terminal.interactive {
        *text = prompt::secret("Paste the key (it is not shown):").await.unwrap_or_default();
    } else {
        let read = input.lock().take(KEY_BYTES as u64).read_to_string(&mut text);
        read.map_err(|error| Failure::usage(format!("Standard input cannot be read: {error}. Nothing was kept.")))?;
    }
    if text.trim().is_empty() {
        return Err(
            Failure::usage("There is no key. Nothing was kept.").hint("printf %s \"$KEY\" | adjutant keys add openai")
        );
    }
    Ok(SecretString::from(text.trim()))
}

/// Wipes the key out of a body that was sent.
fn wipe(mut body: Value) {
    if let Value::String(text) = body["value"].take() {
        drop(Zeroizing::new(text));
    }
}

async fn add(context: &Context, place: &Place, new: New) -> Result<Exit, Failure> {
    let New { provider, name, agent, mine, host: hosts } = new;
    let value = value(context).await?;
    let key = match place {
        Place::Here(instance) => {
            let (engine, home) = (&instance.engine, instance.home);
            let owner = match agent {
                Some(agent) => KeyOwner::Agent(engine.find_agent(home.workspace, &agent).await?.id),
                None if mine => KeyOwner::Person(home.user),
                None => KeyOwner::Workspace,
            };
            let new = NewKey { owner, provider, name, value, hosts };
            wire::key(engine.add_key(home.workspace, home.user, new).await?, &[])
        }
        Place::There(remote) => {
            let owner = match &agent {
                Some(_) => "agent",
                None if mine => "person",
                None => "workspace",
            };
            let workspace = remote.only_workspace().await?;
            let body = json!({
                "owner": owner, "agent_id": agent, "provider": provider, "name": name, "value": value.expose_secret(),
                "hosts": hosts,
            });
            let sent = remote.post_with(&["provider-keys"], &[("workspace_id", &workspace)], &body).await;
            wipe(body);
            remote.read(sent?)?
        }
    };
    said(context, &key, "kept");
    Ok(Exit::Done)
}

fn said(context: &Context, key: &KeyLine, past: &str) {
    context.print(&serde_json::to_value(key).unwrap_or_default(), || {
        let line = format!("✔ {past}: {} for {}, …{}  ({})", clean(&key.name), key.provider, key.hint, short(&key.id));
        vec![context.terminal.out.good(&line)]
    });
}

/// The key that is meant by as much of its id as no other has.
pub(super) async fn find(place: &Place, text: &str) -> Result<KeyLine, Failure> {
    let mut keys = list(place).await?;
    keys.retain(|key| key.id.starts_with(text));
    if keys.len() > 1 {
        return Err(Failure::usage(format!("Several keys begin with `{text}`. Nothing was done.")));
    }
    let none =
        || Failure::not_found(format!("There is no key `{text}`.")).hint("adjutant keys ls shows those there are");
    keys.pop().ok_or_else(none)
}

pub(super) fn id(key: &KeyLine) -> Result<KeyId, Failure> {
    key.id.parse().map_err(|_| Failure::other(format!("`{}` is not the id of a key.", key.id)))
}

async fn rotate(context: &Context, place: &Place, text: &str) -> Result<Exit, Failure> {
    let key = find(place, text).await?;
    let value = value(context).await?;
    let key = match place {
        Place::Here(instance) => {
            let home = instance.home;
            wire::key(instance.engine.rotate_key(home.workspace, home.user, id(&key)?, &value).await?, &[])
        }
        Place::There(remote) => {
            let path = ["provider-keys", &key.id, "rotate"];
            let body = json!({ "value": value.expose_secret() });
            let sent = remote.post(&path, &body).await;
            wipe(body);
            remote.read(sent?)?
        }
    };
    said(context, &key, "rotated");
    Ok(Exit::Done)
}

async fn rm(context: &Context, place: &Place, text: &str) -> Result<Exit, Failure> {
    let key = find(place, text).await?;
    match place {
        Place::Here(instance) => {
            instance.engine.remove_key(instance.home.workspace, instance.home.user, id(&key)?).await?;
        }
        Place::There(remote) => drop(remote.delete(&["provider-keys", &key.id]).await?),
    }
    said(context, &key, "forgotten");
    Ok(Exit::Done)
}

async fn tested(place: &Place, key: &KeyLine, model: Option<String>) -> Result<KeyTested, Failure> {
    let here = async |instance: &Instance, model| -> Result<KeyTested, Failure> {
        Ok(instance.engine.test_key(instance.home.workspace, instance.home.user, id(key)?, model).await?.into())
    };
    let there = async |remote: &Remote, model: Option<String>| -> Result<KeyTested, Failure> {
        let body = model.map_or_else(|| json!({}), |model| json!({ "model": model }));
        remote.read(remote.post(&["provider-keys", &key.id, "test"], &body).await?)
    };
    match place {
        Place::Here(instance) => here(instance, model).await,
        Place::There(remote) => there(remote, model).await,
    }
}

async fn test(context: &Context, place: &Place, text: &str, model: Option<String>) -> Result<Exit, Failure> {
    let key = find(place, text).await?;
    let tested = tested(place, &key, model).await?;
    context.print(&serde_json::to_value(&tested).unwrap_or_default(), || {
        let line = match &tested.message {
            None => context.terminal.out.good(&format!("✔ {} answered", clean(&tested.model))),
            Some(said) if tested.ok => context.terminal.out.good(&format!("✔ {}", clean(said))),
            Some(why) => context.terminal.out.bad(&format!("✖ {}: {}", clean(&tested.model), clean(why))),
        };
        vec![line]
    });
    Ok(if tested.ok { Exit::Done } else { Exit::Other })
}
