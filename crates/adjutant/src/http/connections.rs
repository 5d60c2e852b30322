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
use tokio::sync::{Semaphore, watch};

use super::patience::Patient;
use super::server::Server;

/// How long the head of a request may take, from the first moment or from the answer before. It is longer than proxies keep a
/// connection that rests, so that it is they who close it.
const HEAD: Duration = Duration::from_secs(75);

/// Serves until it is told to stop, and then until every connection has ended.
pub(crate) async fn serve(listener: Patient, server: Server, stop: impl Future<Output = ()>) {
    let most = server.connections;
    answer(listener, super::router(server), most, stop).await;
}

/// Answers at most so many connections at once. While there is no place for one more, who comes waits in the kernel.
async fn answer(mut listener: Patient, router: Router, most: usize, stop: impl Future<Output = ()>) {
    let places = Arc::new(Semaphore::new(most));
    let (stopping, told) = watch::channel(false);
    let mut stop = pin!(stop);
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
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
    use std::sync::Mutex;

    use axum::extract::Path;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
    use tokio::net::TcpStream;
    use tokio::sync::oneshot;
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
        let listener = Patient::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = listener.address().unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let keep = Arc::clone(&heard);
        let router = Router::new().route(
            "/{who}",
            get(move |Path(who): Path<String>| {
                keep.lock().unwrap().push(who);
                std::future::ready("hello")
            }),
        );
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(answer(listener, router, 1, async { stopped.await.unwrap() }));
        let ask = async |stream: &mut TcpStream, who: &str| {
            stream.write_all(format!("GET /{who} HTTP/1.1\r\nhost: here\r\n\r\n").as_bytes()).await.unwrap();
        };
        let hear = async |stream: &mut TcpStream| {
            let mut answer = String::new();
            while !answer.ends_with("hello") {
                let mut piece = [0; 1024];
                let read = stream.read(&mut piece).await.unwrap();
                assert_ne!(read, 0, "{answer}");
                answer += std::str::from_utf8(&piece[..read]).unwrap();
            }
        };
        let mut first = TcpStream::connect(address).await.unwrap();
        ask(&mut first, "first").await;
        hear(&mut first).await;
        let mut second = TcpStream::connect(address).await.unwrap();
        ask(&mut second, "second").await;
        // Each answer is another chance for the second to come in between.
        for _ in 0..20 {
            ask(&mut first, "first").await;
            hear(&mut first).await;
        }
        drop(first);
        hear(&mut second).await;
        let heard = heard.lock().unwrap().clone();
        assert_eq!(heard.iter().position(|who| who == "second"), Some(21), "{heard:?}");
        drop(second);
        stop.send(()).unwrap();
        serving.await.unwrap();
    }
}
