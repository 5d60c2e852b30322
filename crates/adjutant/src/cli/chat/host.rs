//! A server of our own, for as long as the chat is open: on a port of this machine that nobody else was told, with a token that
//! only this data directory's holder can read. Other commands find it as they find any server.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use adjutant_engine::{Secret, Worker};
use secrecy::SecretString;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::cli::remote::Remote;
use crate::cli::{Context, serve};
use crate::failure::Failure;
use crate::http::{About, Patient, Place, Server};
use crate::instance::{Beacon, Instance};

/// A server in this process.
pub(super) struct Host {
    instance: Instance,
    worker: Worker,
    beacon: Beacon,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Host {
    /// Opens the data directory and serves it to ourselves.
    pub(super) async fn start(context: &Context) -> Result<(Self, Remote), Failure> {
        let instance = context.open_to_drive("chat").await?;
        match Self::serve(context, &instance).await {
            Ok((parts, remote)) => {
                let (worker, beacon, stop, serving) = parts;
                Ok((Self { instance, worker, beacon, stop, serving }, remote))
            }
            Err(failure) => {
                instance.close().await;
                Err(failure)
            }
        }
    }

    async fn serve(context: &Context, instance: &Instance) -> Result<(Parts, Remote), Failure> {
        let unbound = |error: std::io::Error| {
            Failure::other(format!("The chat cannot listen on this machine: {error}. Nothing was started."))
        };
        let config = context.config()?;
        let listener = Patient::bind((Ipv4Addr::LOCALHOST, 0).into()).map_err(unbound)?;
        let url = format!("http://{}", listener.address().map_err(unbound)?);
        let token = Secret::new(instance.engine.env(), "adj_");
        let remote = Remote::at(&url, SecretString::from(token.expose().to_owned()))?.within(context);
        let worker = instance.engine.start_worker().await?;
        let beacon = Beacon::light(&config.data.value, &url, &token)?;
        let (close, closing) = watch::channel(false);
        let about =
            About { config, agent_problems: instance.agent_problems.clone(), models: Arc::clone(&instance.models) };
        let place = Place { loopback: true, ..Place::default() };
        let server = Server::new(instance.engine.clone(), instance.home, place, about, &token, closing);
        let (stop, stopped) = oneshot::channel();
        let until = async move {
            // Whoever holds the other end says so by word or by going away.
            let _ = stopped.await;
        };
        let serving = tokio::spawn(serve::listen(listener, server, until, close, Duration::ZERO));
        Ok(((worker, beacon, stop, serving), remote))
    }

    /// Ends it in order: what runs stays where it is and goes on at the next start.
    pub(super) async fn stop(self) {
        drop(self.beacon);
        let _ = self.stop.send(());
        let _ = self.serving.await;
        self.worker.stop().await;
        self.instance.close().await;
    }
}

type Parts = (Worker, Beacon, oneshot::Sender<()>, JoinHandle<()>);
