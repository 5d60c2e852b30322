//! How long the server waits for somebody to take what it sends. A reader that stopped reading would keep its connection, its
//! seat and what was read for it for ever; after a while it is let go, and comes back with `Last-Event-ID`.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::Sleep;

/// How long a write may wait if nobody says otherwise: longer than a network that stutters, shorter than anybody waits for an
/// answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes that wait in the kernel for one reader: some hundred events. Without a limit it would be megabytes each.
const WAITING_BYTES: u32 = 256 * 1024;
/// Connections that wait to be taken up.
const BACKLOG: u32 = 1024;

/// A listener whose connections do not wait for ever.
pub(crate) struct Patient {
    listener: TcpListener,
    patience: Duration,
}

impl Patient {
    /// Listens on an address.
    ///
    /// # Errors
    /// When it is taken, or not ours.
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.set_send_buffer_size(WAITING_BYTES)?;
        socket.bind(address)?;
        let listener = socket.listen(BACKLOG)?;
        Ok(Self { listener, patience: PATIENCE })
    }

    /// The same, waiting this long for somebody to take what is sent.
    pub(crate) fn waiting(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The address it listens on.
    ///
    /// # Errors
    /// When the system does not say.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The next connection, and who it comes from.
    pub(super) async fn accept(&mut self) -> (Hurried<TcpStream>, SocketAddr) {
        let (stream, from) = Listener::accept(&mut self.listener).await;
        // An event that waits to be sent together with the next one is late.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection sends when it likes");
        }
        (Hurried { stream, patience: self.patience, until: None }, from)
    }
}

/// A connection whose writes end in an error when the other side takes nothing for too long.
pub(super) struct Hurried<S> {
    stream: S,
    /// How long a write may wait.
    patience: Duration,
    /// When a write that waits is given up.
    until: Option<Pin<Box<Sleep>>>,
}

impl<S> Hurried<S> {
    fn or_give_up<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.until = None;
            return written;
        }
        let patience = self.patience;
        let until = self.until.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        ready!(until.as_mut().poll(cx));
        tracing::info!("a reader that took nothing for too long was let go");
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "nobody takes what is sent")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Hurried<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Hurried<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.or_give_up(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.or_give_up(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.or_give_up(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.or_give_up(cx, shut)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn whoever_takes_nothing_for_too_long_is_let_go() {
        let (ours, theirs) = tokio::io::duplex(8);
        let mut ours = Hurried { stream: ours, patience: PATIENCE, until: None };
        let began = tokio::time::Instant::now();
        let error = ours.write_all(b"more than fits").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(began.elapsed().as_secs(), PATIENCE.as_secs());
        drop(theirs);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_is_slow_and_goes_on_is_not() {
        let (ours, mut theirs) = tokio::io::duplex(8);
        let mut ours = Hurried { stream: ours, patience: PATIENCE, until: None };
        let reader = tokio::spawn(async move {
            let mut taken = Vec::new();
            for _ in 0..4 {
                tokio::time::sleep(PATIENCE / 2).await;
                let mut piece = [0; 8];
                let read = theirs.read(&mut piece).await.unwrap();
                taken.extend_from_slice(&piece[..read]);
            }
            taken
        });
        ours.write_all(&[7; 32]).await.unwrap();
        assert_eq!(reader.await.unwrap(), [7; 32]);
    }
}
