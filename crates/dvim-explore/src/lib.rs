//! `dvim explore`: a finished run in the browser, on this machine alone.
//!
//! [`Explorer`] answers questions about a run through the engine; [`Server`] brings them over HTTP to the page in
//! `assets/`, which is part of the program and loads nothing from anywhere. Files are not touched here.
//!
//! The server is a few hundred lines on the standard library and httparse (hyper's parser): one thread for each
//! connection, since there is one user. An asynchronous one would bring some fifty crates for nothing that is needed.

mod api;
mod explorer;
mod figures;
mod filter;
mod guard;
mod http;
mod patient;

pub use api::greeting;
pub use explorer::{Explorer, LARGEST_GROUP, SMALLEST_GROUP};

use guard::{Admitted, Guard};
use http::{Connection, Request, Response};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Connections at a time; further ones are turned away.
const MOST_CONNECTIONS: usize = 300;

/// Only this server's own files, no inline script or style, no frame around it, no form that sends anywhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The same for pages that stand alone, without a script and with their style inside: the report, and the refusal of
/// somebody without a token.
const ALONE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A server on the loopback address.
pub struct Server {
    listener: TcpListener,
    guard: Guard,
    port: u16,
    stopped: Arc<AtomicBool>,
}

/// Stops a server from another thread.
#[derive(Clone)]
pub struct Stop {
    stopped: Arc<AtomicBool>,
    port: u16,
}

impl Stop {
    /// Ends [`Server::serve`]: requests that are being answered are answered.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for a connection.
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let _ = TcpStream::connect_timeout(&address, Duration::from_secs(1));
    }
}

impl Server {
    /// Takes a port of the loopback address: this one, or any that is free.
    pub fn bind(port: Option<u16>) -> io::Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.unwrap_or(0)))?;
        let port = listener.local_addr()?.port();
        Ok(Server { listener, guard: Guard::new(port)?, port, stopped: Arc::default() })
    }

    /// The address of the page, with the token.
    pub fn address(&self) -> String {
        self.guard.address()
    }

    /// An address that opens the page once, to start a browser with: other users may see with what it was started.
    pub fn address_for_once(&self) -> io::Result<String> {
        self.guard.address_for_once()
    }

    /// What stops it.
    pub fn stop(&self) -> Stop {
        Stop { stopped: Arc::clone(&self.stopped), port: self.port }
    }

    /// Serves until it is stopped.
    pub fn serve(&self, explorer: &Explorer<'_>) -> io::Result<()> {
        let connected = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            loop {
                let stream = match self.listener.accept() {
                    Ok((stream, _)) => stream,
                    Err(e) if is_passing(&e) => {
                        std::thread::sleep(Duration::from_millis(20));
                        continue;
                    }
                    Err(e) => {
                        self.stopped.store(true, Ordering::SeqCst);
                        return Err(e);
                    }
                };
                if self.stopped.load(Ordering::SeqCst) {
                    return Ok(());
                }
                let place = Place::take(&connected);
                let started = std::thread::Builder::new().stack_size(1 << 20).spawn_scoped(scope, move || {
                    let place = place;
                    self.talk(explorer, stream, place.is_some());
                });
                // Without a thread the connection closes; the next one may be luckier.
                drop(started);
            }
        })
    }

    /// Talks with one client to the end.
    fn talk(&self, explorer: &Explorer<'_>, stream: TcpStream, has_place: bool) {
        let stopped = || self.stopped.load(Ordering::SeqCst);
        let Ok(mut connection) = Connection::new(stream, &stopped) else { return };
        if !has_place {
            let busy = Response::refuse(503, "there are too many connections at once; try again");
            let _ = connection.answer(&dress(busy.with("Retry-After", "1"), POLICY), false, true);
            return connection.drain();
        }
        loop {
            let (response, head_only, last) = match connection.request() {
                Ok(None) => return,
                Ok(Some(request)) => {
                    let last = request.last || stopped();
                    (self.respond(explorer, &request), request.method == "HEAD", last)
                }
                Err(refusal) => (dress(refusal, POLICY), false, true),
            };
            if connection.answer(&response, head_only, last).is_err() {
                return;
            }
            if last {
                return connection.drain();
            }
        }
    }

    /// The answer to a request, whoever sent it.
    fn respond(&self, explorer: &Explorer<'_>, request: &Request) -> Response {
        let admitted = api::parameters(request).and_then(|query| {
            let token = query.iter().find(|(n, _)| n == "token").map(|(_, v)| v.as_str());
            Ok((self.guard.admit(request, token)?, query))
        });
        match admitted {
            Err(refusal) if wants_page(request) && refusal.status == 401 => {
                let page = api::locked_page("Use the address that `dvim explore` printed");
                dress(Response::of(401, "text/html; charset=utf-8", page), ALONE_POLICY)
            }
            Err(refusal) => dress(refusal, POLICY),
            Ok((admitted, query)) => {
                let answer = || api::answer(explorer, request, query);
                let response = catch_unwind(AssertUnwindSafe(answer)).unwrap_or_else(|_| {
                    Response::refuse(500, "dvim met a case that it should have caught; see the terminal")
                });
                let response = match admitted {
                    Admitted::New => response.with("Set-Cookie", self.guard.cookie()),
                    Admitted::Known => response,
                };
                dress(response, if request.path == "/report" { ALONE_POLICY } else { POLICY })
            }
        }
    }
}

/// One of the places for connections; given back when dropped.
struct Place<'a>(&'a AtomicUsize);

impl Place<'_> {
    fn take(taken: &AtomicUsize) -> Option<Place<'_>> {
        if taken.fetch_add(1, Ordering::SeqCst) < MOST_CONNECTIONS {
            return Some(Place(taken));
        }
        taken.fetch_sub(1, Ordering::SeqCst);
        None
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether accepting may work in a moment: a client that hung up, or too many open files.
fn is_passing(e: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, WouldBlock};
    matches!(e.kind(), ConnectionAborted | ConnectionReset | Interrupted | WouldBlock)
        || matches!(e.raw_os_error(), Some(23 | 24))
}

fn wants_page(request: &Request) -> bool {
    let accepts = request.headers.iter().any(|(n, v)| n == "accept" && v.contains("text/html"));
    request.path == "/" && accepts
}

/// What every answer says to the browser.
fn dress(response: Response, policy: &'static str) -> Response {
    response
        .with("Content-Security-Policy", policy)
        .with("X-Content-Type-Options", "nosniff")
        .with("X-Frame-Options", "DENY")
        .with("Referrer-Policy", "no-referrer")
        .with("Cross-Origin-Opener-Policy", "same-origin")
        .with("Cross-Origin-Resource-Policy", "same-origin")
        .with("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
        .with("Cache-Control", "no-store")
}
