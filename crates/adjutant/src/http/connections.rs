//! Connections: at most so many at once, and none that keeps its place without ever asking for something.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::patience::Patient;
use super::server::Server;

/// How long the head of a request may take, from the first moment or from the answer before. It is longer than proxies keep a
/// connection that rests, so that it is they who close it.
const HEAD: Duration = Duration::from_secs(75);

/// Serves until it is told to stop, and then until every connection has ended.
pub(crate) async fn serve(mut listener: Patient, server: Server, stop: impl Future<Output = ()>) {
    let places = Arc::new(Semaphore::new(server.connections));
    let router = super::router(server);
    let (stopping, told) = watch::channel(false);
    let mut stop = pin!(stop);
    loop {
        let next = async {
            let place = place(&places).await;
            (place, listener.accept().await)
        };
        let (place, (stream, from)) = tokio::select! {
            next = next => next,
            () = &mut stop => break,
        };
        let talk = talk(stream, from, router.clone(), told.clone());
        tokio::spawn(async move {
            talk.await;
            drop(place);
        });
    }
    drop((listener, told));
    let _ = stopping.send(true);
    stopping.closed().await;
}

/// A place for one more connection. While there is none, who comes waits in the kernel.
async fn place(places: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    Arc::clone(places).acquire_owned().await.ok()
}

/// Answers what comes over one connection, until it ends or the server does.
async fn talk<S>(stream: S, from: SocketAddr, router: Router, mut stopping: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let inner = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(from));
        inner.call(request)
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        _ = stopping.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%from, %error, "a connection ended early");
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
    use tokio::time::Instant;

    use super::*;

    fn opened(stopping: watch::Receiver<bool>) -> DuplexStream {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let router = Router::new().route("/", get(|| async { "hello" }));
        tokio::spawn(talk(ours, SocketAddr::from(([127, 0, 0, 1], 1)), router, stopping));
        theirs
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_never_ends_the_head_of_a_request_is_let_go() {
        let (_stopping, told) = watch::channel(false);
        for beginning in ["", "GET / HT", "GET / HTTP/1.1\r\nhost: here\r\n"] {
            let (began, mut theirs) = (Instant::now(), opened(told.clone()));
            theirs.write_all(beginning.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            theirs.read_to_end(&mut answer).await.unwrap();
            assert!(answer.is_empty() && began.elapsed() >= HEAD, "{beginning:?}: {answer:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_is_used_again_in_time_stays() {
        let (_stopping, told) = watch::channel(false);
        let mut theirs = opened(told);
        for _ in 0..3 {
            theirs.write_all(b"GET / HTTP/1.1\r\nhost: here\r\n\r\n").await.unwrap();
            let mut answer = String::new();
            while !answer.ends_with("hello") {
                let mut piece = [0; 1024];
                let read = theirs.read(&mut piece).await.unwrap();
                assert_ne!(read, 0, "{answer}");
                answer += std::str::from_utf8(&piece[..read]).unwrap();
            }
            tokio::time::sleep(HEAD / 2).await;
        }
    }

    #[tokio::test]
    async fn a_connection_that_rests_ends_with_the_server() {
        let (stopping, told) = watch::channel(false);
        let mut theirs = opened(told);
        stopping.send(true).unwrap();
        let mut answer = Vec::new();
        theirs.read_to_end(&mut answer).await.unwrap();
        assert!(answer.is_empty(), "{answer:?}");
        stopping.closed().await;
    }

    #[tokio::test]
    async fn one_more_connection_than_there_are_places_waits_until_another_ends() {
        let places = Arc::new(Semaphore::new(1));
        let first = place(&places).await;
        let mut second = pin!(place(&places));
        assert!(futures::poll!(second.as_mut()).is_pending());
        drop(first);
        assert!(second.await.is_some());
    }
}
