//! The local viewer's server: loopback only, one random token; all that it writes is notes beside the trace.
//!
//! [`Viewer::start`] listens and answers until the viewer is dropped or stopped; the caller shows the address
//! from [`Viewer::address`] to the user. Answers come from [`crate::page`]; `guard` checks access.

mod guard;
mod query;
mod routes;

pub use routes::Answers;

use crate::comparison::Comparison;
use crate::page::Page;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix;

/// Maximum time of a connection for a request, or without one: connecting needs no token, and the number of
/// connections is limited.
const MAX_SILENCE: Duration = Duration::from_secs(10);

/// A running viewer.
pub struct Viewer {
    runtime: Option<tokio::runtime::Runtime>,
    socket: SocketAddr,
    token: String,
}

impl Viewer {
    /// Listens on a loopback port (0: any free one) and answers requests in the background; where no threads can be
    /// made, during [`Interrupt::wait`] on its thread.
    ///
    /// # Errors
    /// If the port is taken or no random numbers are to be had.
    pub fn start(page: Arc<Page>, port: u16) -> io::Result<Viewer> {
        Viewer::serving(port, |token| routes::router(page, token))
    }

    /// Answers for a comparison and the pages of both sides: before, after.
    ///
    /// # Errors
    /// Those of [`start`](Viewer::start).
    pub fn start_of_two(comparison: &Comparison, pages: [Arc<Page>; 2], port: u16) -> io::Result<Viewer> {
        Viewer::serving(port, |token| routes::router_of_two(comparison, pages, token))
    }

    fn serving(port: u16, app: impl FnOnce(String) -> axum::Router) -> io::Result<Viewer> {
        let token = random_token()?;
        let runtime = match has_threads() {
            true => {
                let mut builder = tokio::runtime::Builder::new_multi_thread();
                builder.worker_threads(2).thread_name("viewer").enable_all().build()?
            }
            false => tokio::runtime::Builder::new_current_thread().enable_all().build()?,
        };
        let listener =
            runtime.block_on(tokio::net::TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))))?;
        let socket = listener.local_addr()?;
        let app = app(token.clone());
        runtime.spawn(serve(listener, app));
        Ok(Viewer { runtime: Some(runtime), socket, token })
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.socket.port()
    }

    /// The token that requests must carry.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The address to open in a browser.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/?token={}", self.port(), self.token)
    }

    /// Heeds these signals from now on: one that comes before [`Interrupt::wait`] is not forgotten.
    ///
    /// # Errors
    /// If signals cannot be waited for.
    pub fn interrupt(&self, signals: impl IntoIterator<Item = i32>) -> io::Result<Interrupt<'_>> {
        let runtime = self.runtime.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let _entered = runtime.enter();
        let signals = signals.into_iter().map(|signal| unix::signal(unix::SignalKind::from_raw(signal)));
        Ok(Interrupt { runtime, signals: signals.collect::<io::Result<_>>()? })
    }
}

/// Whether the runtime's threads and one for an answer can be made; its builder would end the program if not.
fn has_threads() -> bool {
    let probes: Vec<_> = (0..3).map(|_| std::thread::Builder::new().spawn(|| ())).collect();
    // An empty function does not panic.
    probes.into_iter().all(|probe| probe.is_ok_and(|probe| probe.join().is_ok()))
}

/// A signal to come.
pub struct Interrupt<'a> {
    runtime: &'a tokio::runtime::Runtime,
    signals: Vec<unix::Signal>,
}

impl Interrupt<'_> {
    /// Waits for one of the signals, while the viewer answers.
    pub fn wait(mut self) {
        self.runtime.block_on(std::future::poll_fn(|context| {
            // Each is polled, so that each can wake this.
            let came =
                self.signals.iter_mut().fold(false, |came, one| came | one.poll_recv(context).is_ready());
            if came { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        }));
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Browsers keep connections open; nothing that they could still ask matters any more.
            runtime.shutdown_background();
        }
    }
}

/// Answers all connections until the runtime ends.
async fn serve(listener: tokio::net::TcpListener, app: axum::Router) {
    loop {
        let Ok((connection, _)) = listener.accept().await else {
            // Too many are open; some will end.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        // Small answers must not wait for the browser to acknowledge the ones before.
        let _ = connection.set_nodelay(true);
        let service = TowerToHyperService::new(app.clone());
        tokio::spawn(async move {
            let mut server = http1::Builder::new();
            server.timer(TokioTimer::new()).header_read_timeout(MAX_SILENCE);
            // An error of one connection is not an error here.
            let _ = server.serve_connection(TokioIo::new(connection), service).await;
        });
    }
}

/// 128 random bits in hexadecimal.
fn random_token() -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
