//! A way to PostgreSQL that can be cut, frozen and slowed down: one for each node.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// What happens to what passes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Weather {
    /// It passes.
    Fair,
    /// Nothing passes, and nobody is told: as with a cable that was pulled.
    Frozen,
    /// Each piece takes a while.
    Slow,
}

struct Inner {
    weather: AtomicU8,
    /// Counts the cuts: a connection that was made before the last one is ended.
    cuts: AtomicU64,
    /// Counts the deaths: what comes over a connection that was made before the last one goes nowhere, and nobody is told.
    deaths: AtomicU64,
    /// Counts what was held up, lost or ended by any of it.
    hits: AtomicU64,
    changed: Condvar,
    lock: Mutex<()>,
}

/// When a connection was made, in cuts and deaths.
#[derive(Clone, Copy)]
struct Made {
    cuts: u64,
    deaths: u64,
}

/// The way itself. It lasts as long as the test.
#[derive(Clone)]
pub(crate) struct Proxy {
    inner: Arc<Inner>,
    pub(crate) port: u16,
}

impl Proxy {
    pub(crate) fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (weather, cuts, deaths) = (AtomicU8::new(Weather::Fair as u8), AtomicU64::new(0), AtomicU64::new(0));
        let hits = AtomicU64::new(0);
        let inner = Arc::new(Inner { weather, cuts, deaths, hits, changed: Condvar::new(), lock: Mutex::new(()) });
        let (proxy, server) = (Self { inner, port }, server.to_owned());
        let ways = proxy.clone();
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                // A server that is down refuses, and so do we.
                let Ok(far) = TcpStream::connect(&server) else { continue };
                ways.join(&near, &far);
            }
        });
        proxy
    }

    fn join(&self, near: &TcpStream, far: &TcpStream) {
        let made =
            Made { cuts: self.inner.cuts.load(Ordering::SeqCst), deaths: self.inner.deaths.load(Ordering::SeqCst) };
        for (from, to) in [(near, far), (far, near)] {
            let (Ok(from), Ok(to), proxy) = (from.try_clone(), to.try_clone(), self.clone()) else { return };
            std::thread::spawn(move || proxy.carry(from, to, made));
        }
    }

    fn carry(&self, mut from: TcpStream, mut to: TcpStream, made: Made) {
        let mut piece = [0; 16 * 1024];
        let _ = from.set_read_timeout(Some(Duration::from_millis(200)));
        loop {
            let read = match from.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
                    0
                }
                Err(_) => break,
            };
            if read > 0 && self.inner.weather.load(Ordering::SeqCst) != Weather::Fair as u8 {
                self.hit();
            }
            self.wait_while_frozen(made);
            if self.inner.cuts.load(Ordering::SeqCst) != made.cuts {
                self.hit();
                break;
            }
            if self.inner.deaths.load(Ordering::SeqCst) != made.deaths {
                if read > 0 {
                    self.hit();
                }
                continue;
            }
            if self.inner.weather.load(Ordering::SeqCst) == Weather::Slow as u8 && read > 0 {
                self.pause(Duration::from_millis(15));
            }
            if to.write_all(&piece[..read]).is_err() {
                break;
            }
        }
        // The other end of a dead connection hears nothing of its end, either.
        if self.inner.deaths.load(Ordering::SeqCst) == made.deaths {
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
        }
    }

    fn hit(&self) {
        self.inner.hits.fetch_add(1, Ordering::SeqCst);
    }

    /// How much was held up, lost or ended so far.
    pub(crate) fn hits(&self) -> u64 {
        self.inner.hits.load(Ordering::SeqCst)
    }

    fn wait_while_frozen(&self, made: Made) {
        while self.inner.weather.load(Ordering::SeqCst) == Weather::Frozen as u8
            && self.inner.cuts.load(Ordering::SeqCst) == made.cuts
        {
            self.pause(Duration::from_millis(200));
        }
    }

    fn pause(&self, time: Duration) {
        let held = self.inner.lock.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.inner.changed.wait_timeout(held, time));
    }

    pub(crate) fn set(&self, weather: Weather) {
        self.inner.weather.store(weather as u8, Ordering::SeqCst);
        self.inner.changed.notify_all();
    }

    /// Lets every connection that there is go nowhere without a word, as after a failover; new ones are fine.
    pub(crate) fn deaden(&self) {
        self.inner.deaths.fetch_add(1, Ordering::SeqCst);
        self.inner.changed.notify_all();
    }

    /// Ends every connection that there is.
    pub(crate) fn cut(&self) {
        self.inner.cuts.fetch_add(1, Ordering::SeqCst);
        self.inner.changed.notify_all();
    }
}
