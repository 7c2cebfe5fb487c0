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
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Connections at a time. Beyond it the one that has waited longest without a request makes room; where all are being
/// answered, a further one is turned away.
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
    waiting: Waiting,
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
        Ok(Server { listener, guard: Guard::new(port)?, port, stopped: Arc::default(), waiting: Waiting::default() })
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
                    Ok((stream, _)) => Arc::new(stream),
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
                let place = Place::take(&connected, &self.waiting);
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
    fn talk(&self, explorer: &Explorer<'_>, stream: Arc<TcpStream>, has_place: bool) {
        let stopped = || self.stopped.load(Ordering::SeqCst);
        let Ok(mut connection) = Connection::new(Arc::clone(&stream), &stopped) else { return };
        if !has_place {
            let busy = Response::refuse(503, "there are too many connections at once; try again");
            let _ = connection.answer(&dress(busy.with("Retry-After", "1"), POLICY), false, true);
            return self.waiting.during(&stream, false, || connection.drain());
        }
        let mut is_known = false;
        loop {
            let request = self.waiting.during(&stream, is_known, || connection.request());
            let (response, head_only, last) = match request {
                Ok(None) => return,
                Ok(Some(request)) => {
                    let last = request.last || stopped();
                    let response = self.respond(explorer, &request, &mut is_known);
                    (response, request.method == "HEAD", last)
                }
                Err(refusal) => (dress(refusal, POLICY), false, true),
            };
            if connection.answer(&response, head_only, last).is_err() {
                return;
            }
            if last {
                return self.waiting.during(&stream, false, || connection.drain());
            }
        }
    }

    /// The answer to a request, whoever sent it. `is_known` becomes true where it brought a secret.
    fn respond(&self, explorer: &Explorer<'_>, request: &Request, is_known: &mut bool) -> Response {
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
                *is_known = true;
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

/// What a page gets that asks an explorer in its own program, without a server: status, type and body. For the tool in
/// the browser.
pub fn ask(explorer: &Explorer<'_>, method: &str, target: &str, body: &[u8]) -> (u16, &'static str, Vec<u8>) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let text = |s: &str| s.to_string();
    let headers = vec![("content-type".into(), "application/json".into())];
    let (method, path_text, query) = (text(method), text(path), text(query));
    let request = Request { method, path: path_text, query, headers, body: body.into(), last: false };
    let answer = match path.starts_with('/') {
        true => api::parameters(&request).map(|query| api::answer(explorer, &request, query)),
        false => Err(Response::refuse(400, "an address begins with a slash")),
    };
    let Response { status, content_type, body, .. } = answer.unwrap_or_else(|refusal| refusal);
    (status, content_type, body)
}

/// The status of the answer to these bytes, as if they came from somebody with the token; `None` where they are no
/// whole request. For fuzzing.
#[doc(hidden)]
pub fn answer_to(explorer: &Explorer<'_>, bytes: &[u8]) -> Option<u16> {
    let (mut request, head, length) = match http::parse(bytes) {
        Ok(found) => found?,
        Err(refusal) => return Some(refusal.status),
    };
    request.body = bytes.get(head..head + length)?.to_vec();
    let answer = api::parameters(&request).map(|query| api::answer(explorer, &request, query));
    Some(answer.unwrap_or_else(|refusal| refusal).status)
}

/// One of the places for connections; given back when dropped.
struct Place<'a>(&'a AtomicUsize);

impl Place<'_> {
    /// A place that is free, or that of a connection which was only waiting and is closed for it.
    fn take<'a>(taken: &'a AtomicUsize, waiting: &Waiting) -> Option<Place<'a>> {
        if taken.fetch_add(1, Ordering::SeqCst) < MOST_CONNECTIONS || waiting.close_one() {
            return Some(Place(taken));
        }
        taken.fetch_sub(1, Ordering::SeqCst);
        None
    }
}

/// Connections that wait for a request to arrive, in the order in which they make room: those that brought no secret
/// yet, then the others, the longest waiting first. Idle ones can so never lock out the user, whoever opened them.
#[derive(Default)]
struct Waiting {
    next: AtomicU64,
    held: Mutex<BTreeMap<(bool, u64), Arc<TcpStream>>>,
}

impl Waiting {
    fn held(&self) -> MutexGuard<'_, BTreeMap<(bool, u64), Arc<TcpStream>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds a connection as waiting while `wait` runs.
    fn during<T>(&self, stream: &Arc<TcpStream>, is_known: bool, wait: impl FnOnce() -> T) -> T {
        let key = (is_known, self.next.fetch_add(1, Ordering::SeqCst));
        self.held().insert(key, Arc::clone(stream));
        let found = wait();
        self.held().remove(&key);
        found
    }

    /// Closes the first in order, whose thread then ends; `false` where none waits.
    fn close_one(&self) -> bool {
        let first = self.held().pop_first();
        first.map(|(_, stream)| stream.shutdown(Shutdown::Both)).is_some()
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
