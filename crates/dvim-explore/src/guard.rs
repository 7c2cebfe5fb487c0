//! Who may ask: only pages of this server, in a browser that was given the token.
//!
//! The server listens on the loopback address alone. That is not enough: any page in the same browser can send requests
//! there, and a name of a foreign site can be made to point there (DNS rebinding). So a request must name this server
//! as its host and, where the browser says where it comes from, as its origin; and it must know a secret that was drawn
//! for this start. The secret stands in the address that is printed; the first answer puts another into a cookie that
//! no script can read and no foreign site can use.

use crate::http::{Request, Response};
use subtle::ConstantTimeEq;

/// Draws 32 bytes from the operating system, as 64 hexadecimal digits.
fn secret() -> std::io::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|e| std::io::Error::other(e.to_string()))?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

/// Whether two texts are the same, in a time that does not say where they differ.
fn same(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

/// The secrets of one start, and the names of the server.
pub struct Guard {
    port: u16,
    token: String,
    session: String,
    /// Opens the page once: the address that a browser is started with can be seen by every user of the machine.
    once: std::sync::Mutex<Option<String>>,
}

/// What a request may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// It has the cookie already.
    Known,
    /// It brought the token: it is to be given the cookie.
    New,
}

impl Guard {
    /// A guard with new secrets.
    pub fn new(port: u16) -> std::io::Result<Guard> {
        Ok(Guard { port, token: secret()?, session: secret()?, once: std::sync::Mutex::new(None) })
    }

    /// The address with the token, which lasts as long as the server.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/?token={}", self.port, self.token)
    }

    /// An address that opens the page once.
    pub fn address_for_once(&self) -> std::io::Result<String> {
        let drawn = secret()?;
        let address = format!("http://127.0.0.1:{}/?token={drawn}", self.port);
        *self.once.lock().unwrap_or_else(|e| e.into_inner()) = Some(drawn);
        Ok(address)
    }

    /// The cookie, as it is set. Cookies do not know of ports, so its name does.
    pub fn cookie(&self) -> String {
        format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie_name(), self.session)
    }

    fn cookie_name(&self) -> String {
        format!("dvim-{}", self.port)
    }

    /// Lets a request in, or says why not.
    pub fn admit(&self, request: &Request, token: Option<&str>) -> Result<Admitted, Response> {
        let names = [format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)];
        let host = request.header("host")?.unwrap_or_default().to_ascii_lowercase();
        if !names.contains(&host) {
            return Err(Response::refuse(
                421,
                "the Host is not this server: use the address that `dvim explore` printed",
            ));
        }
        let is_ours = |origin: &str| names.iter().any(|n| format!("http://{n}") == origin.to_ascii_lowercase());
        if request.header("origin")?.is_some_and(|origin| !is_ours(origin)) {
            return Err(Response::refuse(403, "the request comes from another site"));
        }
        // A link that somebody follows may come from anywhere; whatever else does not come from our own page does not
        // pass.
        let from = request.header("sec-fetch-site")?;
        if request.path != "/" && from.is_some_and(|s| s != "same-origin" && s != "none") {
            return Err(Response::refuse(403, "the request comes from another site"));
        }
        if let Some(token) = token {
            return match self.is_token(token) {
                true => Ok(Admitted::New),
                false => Err(Response::refuse(401, "the token is wrong: use the address that `dvim explore` printed")),
            };
        }
        let bearer = request.header("authorization")?.and_then(|a| a.strip_prefix("Bearer "));
        if bearer.is_some_and(|bearer| same(bearer, &self.token)) {
            return Ok(Admitted::Known);
        }
        let name = self.cookie_name();
        let cookies = request.headers.iter().filter(|(n, _)| n == "cookie").flat_map(|(_, v)| v.split(';'));
        let mut ours = cookies.filter_map(|c| c.trim().split_once('=')).filter(|(n, _)| *n == name);
        if ours.any(|(_, v)| same(v, &self.session)) {
            return Ok(Admitted::Known);
        }
        Err(Response::refuse(401, "the token is missing: use the address that `dvim explore` printed"))
    }

    fn is_token(&self, token: &str) -> bool {
        let mut once = self.once.lock().unwrap_or_else(|e| e.into_inner());
        if once.as_ref().is_some_and(|o| same(o, token)) {
            *once = None;
            return true;
        }
        same(token, &self.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_long_and_differ() {
        let (a, b) = (secret().unwrap(), secret().unwrap());
        assert!(a.len() == 64 && a != b && same(&a, &a) && !same(&a, &b) && !same(&a, &a[..63]) && !same("", &a));
    }

    #[test]
    fn an_address_for_once_opens_once() {
        let guard = Guard::new(80).unwrap();
        let address = guard.address_for_once().unwrap();
        let token = address.split('=').next_back().unwrap();
        assert!(guard.is_token(token) && !guard.is_token(token) && guard.is_token(&guard.token));
    }
}
