//! Requests off a socket and answers onto it: HTTP/1.1 for one user on one machine. Everything is bounded: the bytes
//! of a request, the time it may take, the time an answer may take. What is not understood gets a 4xx.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of a request line with its headers.
pub const MOST_HEAD: usize = 16 << 10;
/// Bytes of a path with its query.
pub const MOST_TARGET: usize = 4 << 10;
/// Bytes of a body.
pub const MOST_BODY: usize = 64 << 10;
/// Headers of a request.
pub const MOST_HEADERS: usize = 64;
/// From the first byte of a request to its last.
pub const REQUEST_TIME: Duration = Duration::from_secs(10);
/// Between two requests of one connection.
const IDLE_TIME: Duration = Duration::from_secs(60);
/// To take an answer.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// For a client that is refused to stop sending.
const DRAIN_TIME: Duration = Duration::from_secs(2);
/// Between two looks at the clock and at whether the server stops.
const LOOK: Duration = Duration::from_millis(100);

/// A request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// `GET`, `POST`, …
    pub method: String,
    /// The path, as sent.
    pub path: String,
    /// What follows the `?`, as sent.
    pub query: String,
    /// Headers; names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Whether the connection ends with this request.
    pub last: bool,
}

impl Request {
    /// The only header of that name; `Err` where there are several.
    pub fn header(&self, name: &str) -> Result<Option<&str>, Response> {
        let mut found = self.headers.iter().filter(|(n, _)| n == name).map(|(_, v)| v.as_str());
        match (found.next(), found.next()) {
            (_, Some(_)) => Err(Response::refuse(400, &format!("there are several `{name}` headers"))),
            (one, None) => Ok(one),
        }
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// `Content-Type`.
    pub content_type: &'static str,
    /// Further headers.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// An answer with a body.
    pub fn of(status: u16, content_type: &'static str, body: impl Into<Vec<u8>>) -> Response {
        Response { status, content_type, headers: Vec::new(), body: body.into() }
    }

    /// A value as JSON.
    pub fn json(status: u16, value: &impl serde::Serialize) -> Response {
        match serde_json::to_vec(value) {
            Ok(body) => Response::of(status, "application/json", body),
            Err(e) => Response::refuse(500, &format!("the answer cannot be written: {e}")),
        }
    }

    /// A refusal, as `{"error": {"status", "message"}}`.
    pub fn refuse(status: u16, message: &str) -> Response {
        let body = serde_json::json!({ "error": { "status": status, "message": message } });
        Response::of(status, "application/json", body.to_string())
    }

    /// The same with a header.
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Response {
        self.headers.push((name, value.into()));
        self
    }
}

/// One client.
pub struct Connection<'a> {
    stream: Arc<TcpStream>,
    /// Bytes that were read and not yet used.
    buffer: Vec<u8>,
    stopped: &'a dyn Fn() -> bool,
}

/// What waiting for bytes came to.
enum Arrived {
    More,
    End,
    TooLate,
}

impl<'a> Connection<'a> {
    /// A connection, which gives up when `stopped` says so.
    pub fn new(stream: Arc<TcpStream>, stopped: &'a dyn Fn() -> bool) -> io::Result<Connection<'a>> {
        stream.set_read_timeout(Some(LOOK))?;
        stream.set_write_timeout(Some(ANSWER_TIME))?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, buffer: Vec::new(), stopped })
    }

    fn more(&mut self, until: Instant) -> Arrived {
        let mut chunk = [0; 8192];
        loop {
            if (self.stopped)() {
                return Arrived::End;
            }
            if Instant::now() >= until {
                return Arrived::TooLate;
            }
            match (&*self.stream).read(&mut chunk) {
                Ok(0) => return Arrived::End,
                Ok(n) => {
                    self.buffer.extend_from_slice(&chunk[..n]);
                    return Arrived::More;
                }
                Err(e) => match e.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted => {}
                    _ => return Arrived::End,
                },
            }
        }
    }

    /// The next request; `Ok(None)` where the client has gone, `Err` with what to answer before closing.
    pub fn request(&mut self) -> Result<Option<Request>, Response> {
        if self.buffer.is_empty() && !matches!(self.more(Instant::now() + IDLE_TIME), Arrived::More) {
            return Ok(None);
        }
        let until = Instant::now() + REQUEST_TIME;
        let late = || Response::refuse(408, "the request took longer than 10 seconds to arrive");
        let (mut request, head, length) = loop {
            if let Some(found) = parse(&self.buffer)? {
                break found;
            }
            match self.more(until) {
                Arrived::More => {}
                Arrived::End => return Ok(None),
                Arrived::TooLate => return Err(late()),
            }
        };
        self.buffer.drain(..head);
        while self.buffer.len() < length {
            match self.more(until) {
                Arrived::More => {}
                Arrived::End => return Ok(None),
                Arrived::TooLate => return Err(late()),
            }
        }
        request.body = self.buffer.drain(..length).collect();
        Ok(Some(request))
    }

    /// Sends an answer.
    pub fn answer(&mut self, response: &Response, head_only: bool, last: bool) -> io::Result<()> {
        let mut head = format!(
            "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: {}\r\n",
            response.status,
            reason(response.status),
            response.content_type,
            response.body.len(),
            if last { "close" } else { "keep-alive" }
        );
        for (name, value) in &response.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        let mut bytes = head.into_bytes();
        if !head_only {
            bytes.extend_from_slice(&response.body);
        }
        (&*self.stream).write_all(&bytes)
    }

    /// Ends a connection whose client may still be sending: without reading on, the answer could be lost.
    pub fn drain(mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
        let until = Instant::now() + DRAIN_TIME;
        while let Arrived::More = self.more(until) {
            self.buffer.clear();
        }
    }
}

/// A request without its body, the bytes of its head and of its body; `None` where bytes are missing.
pub fn parse(bytes: &[u8]) -> Result<Option<(Request, usize, usize)>, Response> {
    let too_long = || Response::refuse(414, &format!("the address is longer than {MOST_TARGET} bytes"));
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let outcome = parsed.parse(&bytes[..bytes.len().min(MOST_HEAD)]).map_err(|e| match e {
        httparse::Error::TooManyHeaders => {
            Response::refuse(431, &format!("there are more than {MOST_HEADERS} headers"))
        }
        e => Response::refuse(400, &format!("this is not a request of HTTP/1.1: {e}")),
    })?;
    if parsed.path.is_some_and(|p| p.len() > MOST_TARGET) {
        return Err(too_long());
    }
    let head = match outcome {
        httparse::Status::Complete(n) => n,
        httparse::Status::Partial if bytes.len() >= MOST_HEAD => {
            return Err(if parsed.path.is_none() {
                too_long()
            } else {
                Response::refuse(431, &format!("the headers are longer than {MOST_HEAD} bytes"))
            });
        }
        httparse::Status::Partial => return Ok(None),
    };
    let target = parsed.path.unwrap_or_default();
    if !target.starts_with('/') {
        return Err(Response::refuse(400, "the address must be a path that begins with `/`"));
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut request = Request {
        method: parsed.method.unwrap_or_default().to_string(),
        path: path.to_string(),
        query: query.to_string(),
        ..Request::default()
    };
    for header in parsed.headers.iter() {
        let value = std::str::from_utf8(header.value)
            .map_err(|_| Response::refuse(400, &format!("the header `{}` is not text", header.name)))?;
        request.headers.push((header.name.to_ascii_lowercase(), value.to_string()));
    }
    if request.header("transfer-encoding")?.is_some() {
        return Err(Response::refuse(411, "a body is taken with a Content-Length, not in chunks"));
    }
    let length = match request.header("content-length")? {
        None => 0,
        Some(text) if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) => text
            .parse::<usize>()
            .ok()
            .filter(|n| *n <= MOST_BODY)
            .ok_or_else(|| Response::refuse(413, &format!("the body is longer than {MOST_BODY} bytes")))?,
        Some(_) => return Err(Response::refuse(400, "the Content-Length is not a number")),
    };
    let said = request.header("connection")?.unwrap_or_default().to_ascii_lowercase();
    let says = |word: &str| said.split(',').any(|part| part.trim() == word);
    request.last = says("close") || (parsed.version == Some(0) && !says("keep-alive"));
    Ok(Some((request, head, length)))
}

/// A part of an address without its `%` escapes; `None` where they are wrong or it is not text.
pub fn decode(text: &str, plus_is_space: bool) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        match b {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                out.push((digit()? * 16 + digit()?) as u8);
            }
            b'+' if plus_is_space => out.push(b' '),
            b => out.push(b),
        }
    }
    String::from_utf8(out).ok().filter(|s| !s.contains('\0'))
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        411 => "Length Required",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(bytes: &[u8]) -> u16 {
        parse(bytes).expect_err("a refusal").status
    }

    #[test]
    fn a_request_is_taken_apart() {
        let bytes = b"POST /api/new?x=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET";
        let (request, head, length) = parse(bytes).unwrap().unwrap();
        assert_eq!(
            (request.method.as_str(), request.path.as_str(), request.query.as_str()),
            ("POST", "/api/new", "x=1")
        );
        assert_eq!((&bytes[head..head + length], request.last), (&b"abc"[..], false));
        assert_eq!(parse(&bytes[..20]), Ok(None));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        assert_eq!(refused(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n"), 400);
        assert_eq!(refused(b"GET / HTTP/9.9\r\n\r\n"), 400);
        assert_eq!(refused(b"GET http://elsewhere/ HTTP/1.1\r\n\r\n"), 400);
        assert_eq!(refused(b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), 400);
        assert_eq!(refused(b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"), 400);
        assert_eq!(refused(b"GET / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n"), 413);
        assert_eq!(refused(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), 411);
        assert_eq!(refused(format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(MOST_TARGET)).as_bytes()), 414);
        assert_eq!(refused(format!("GET /{}", "a".repeat(MOST_HEAD)).as_bytes()), 414);
        assert_eq!(refused(format!("GET / HTTP/1.1\r\nA: {}", "a".repeat(MOST_HEAD)).as_bytes()), 431);
        assert_eq!(refused(format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(65)).as_bytes()), 431);
    }

    #[test]
    fn escapes_are_undone() {
        assert_eq!(decode("a%20b+c%2F", true).as_deref(), Some("a b c/"));
        assert_eq!(decode("a+b", false).as_deref(), Some("a+b"));
        assert_eq!(decode("%", false), None);
        assert_eq!(decode("%g0", false), None);
        assert_eq!(decode("%ff", false), None);
        assert_eq!(decode("%00", false), None);
    }
}
