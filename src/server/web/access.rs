//! Decides who may use the page: the link that is shown in the terminal has a token, which works
//! once and is exchanged for a cookie.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::body::Incoming;
use hyper::header::{COOKIE, HOST, HeaderName, HeaderValue, ORIGIN, SET_COOKIE};
use hyper::{HeaderMap, Method, Request, StatusCode, Uri};
use schemas::ErrorCode;
use serde::Deserialize;
use serde_json::json;
use subtle::ConstantTimeEq;

use super::response::{answer_json, refuse, refuse_body};
use crate::server::connections::{HttpAnswer, MAX_BODY_TIME, is_json, read_body};
use crate::server::host::{HostFilter, HttpRefusal, single_value};
use base::random::random_bytes;

/// The reason for refusing a page that is not this one.
const OTHER_PAGE: HttpRefusal = (
    StatusCode::FORBIDDEN,
    "Requests from other pages are refused, even from pages on this machine",
);

/// The body of a login.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    token: String,
}

/// The secrets of one run of the server.
pub(super) struct Access {
    hosts: HostFilter,
    address: SocketAddr,
    /// Has the port in its name, because a browser sends a cookie to all ports of a host.
    cookie_name: String,
    cookie: String,
    /// The token of the current link.
    token: Mutex<String>,
    show_link: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Access {
    pub(super) fn new(
        address: SocketAddr,
        show_link: Arc<dyn Fn(&str) + Send + Sync>,
    ) -> io::Result<Self> {
        Ok(Self {
            hosts: HostFilter::new(address),
            address,
            cookie_name: format!("sessions-{}", address.port()),
            cookie: create_secret()?,
            token: Mutex::new(create_secret()?),
            show_link,
        })
    }

    /// Shows the link that opens the page. The token is in the fragment, which a browser does not
    /// send, so it is in no log of requests.
    pub(super) fn show_link(&self) {
        let token = self.token.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (self.show_link)(&format!("http://{}/#token={token}", self.address));
    }

    /// Refuses a request that does not name this server, or that comes from another page. The page
    /// itself has the host of the request as its origin, with its port.
    pub(super) fn check_origin(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), HttpRefusal> {
        self.hosts.check_headers(uri, headers)?;
        if headers.contains_key(ORIGIN) {
            let host = single_value(headers, &HOST).unwrap_or_default();
            let origin =
                single_value(headers, &ORIGIN).and_then(|page| page.strip_prefix("http://"));
            if !origin.is_some_and(|page| page.eq_ignore_ascii_case(host)) {
                return Err(OTHER_PAGE);
            }
        }
        // A browser says by itself which page a request comes from; `none` is the user.
        let site = HeaderName::from_static("sec-fetch-site");
        if !headers.contains_key(&site) {
            return Ok(());
        }
        match single_value(headers, &site) {
            Some("same-origin" | "none") => Ok(()),
            Some(_) if is_navigation(uri, headers) => Ok(()),
            _ => Err(OTHER_PAGE),
        }
    }

    /// Returns true if a request has the cookie. The comparison takes constant time.
    pub(super) fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let mut found = false;
        for header in headers.get_all(COOKIE) {
            for pair in header.to_str().unwrap_or_default().split(';') {
                let Some((name, value)) = pair.trim().split_once('=') else { continue };
                found |= name == self.cookie_name && is_equal(value, &self.cookie);
            }
        }
        found
    }

    /// Exchanges the token of a link for the cookie. Then another link is shown, for another browser.
    pub(super) async fn answer_login(&self, request: Request<Incoming>) -> HttpAnswer {
        if request.method() != Method::POST || !is_json(request.headers()) {
            let message = "A login is a POST with JSON";
            return refuse(StatusCode::BAD_REQUEST, ErrorCode::InvalidArgument, message);
        }
        let body = match read_body(request.into_body(), MAX_BODY_TIME).await {
            Ok(body) => body,
            Err((status, message)) => return refuse_body(status, &message),
        };
        let token = serde_json::from_slice::<Login>(&body).map(|login| login.token);
        if !token.is_ok_and(|token| self.take_token(&token)) {
            let message = "This link has expired. Run `sessions web` for a new one.";
            return refuse(StatusCode::FORBIDDEN, ErrorCode::InvalidArgument, message);
        }
        let cookie =
            format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie_name, self.cookie);
        let Ok(cookie) = HeaderValue::from_str(&cookie) else {
            let message = "The cookie could not be created";
            return refuse(StatusCode::INTERNAL_SERVER_ERROR, ErrorCode::InternalError, message);
        };
        self.show_link();
        let mut answer = answer_json(StatusCode::OK, &json!({ "status": "ok" }));
        answer.headers_mut().insert(SET_COOKIE, cookie);
        answer
    }

    /// Returns true if this is the token of the current link, and replaces that.
    fn take_token(&self, sent: &str) -> bool {
        let mut token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_equal(sent, &token) {
            return false;
        }
        // Without randomness there is no further link.
        match create_secret() {
            Ok(next) => *token = next,
            Err(_) => return false,
        }
        true
    }
}

/// Returns true if the user follows a link of another page to a view. The page has no data, and its
/// cookie is not sent.
fn is_navigation(uri: &Uri, headers: &HeaderMap) -> bool {
    let mode = HeaderName::from_static("sec-fetch-mode");
    !uri.path().starts_with("/api/") && single_value(headers, &mode) == Some("navigate")
}

/// Compares two secrets in constant time.
fn is_equal(sent: &str, secret: &str) -> bool {
    bool::from(sent.as_bytes().ct_eq(secret.as_bytes()))
}

/// Creates a secret that cannot be guessed.
fn create_secret() -> io::Result<String> {
    let bytes = random_bytes::<32>().map_err(io::Error::other)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> Access {
        let address = "127.0.0.1:8766".parse().expect("address");
        Access::new(address, Arc::new(|_| {})).expect("randomness")
    }

    fn check(path: &'static str, headers: &[(&'static str, &'static str)]) -> bool {
        let mut map = HeaderMap::from_iter([(HOST, HeaderValue::from_static("127.0.0.1:8766"))]);
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        access().check_origin(&Uri::from_static(path), &map).is_ok()
    }

    #[test]
    fn only_its_own_page_may_call() {
        assert!(check("/api/live", &[]));
        assert!(check("/api/live", &[("origin", "http://127.0.0.1:8766")]));
        for origin in
            ["http://127.0.0.1:5173", "http://localhost:8766", "null", "https://x.example"]
        {
            assert!(!check("/api/live", &[("origin", origin)]), "{origin}");
        }
        assert!(check("/api/live", &[("sec-fetch-site", "same-origin")]));
        assert!(check("/", &[("sec-fetch-site", "none"), ("sec-fetch-mode", "navigate")]));
        assert!(check("/", &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")]));
        for site in ["same-site", "cross-site", "nonsense"] {
            assert!(!check("/api/live", &[("sec-fetch-site", site)]), "{site}");
            let navigation = [("sec-fetch-site", site), ("sec-fetch-mode", "navigate")];
            assert!(!check("/api/live", &navigation), "{site}");
            assert!(!check("/page.js", &[("sec-fetch-site", site), ("sec-fetch-mode", "no-cors")]));
        }
    }

    #[test]
    fn a_token_works_once() {
        let access = access();
        let token = access.token.lock().expect("unlocked").clone();
        assert!(!access.take_token(""));
        assert!(!access.take_token(&token[1..]));
        assert!(access.take_token(&token));
        assert!(!access.take_token(&token));
    }

    #[test]
    fn only_the_whole_cookie_of_this_port_opens() {
        let access = access();
        let good = format!("sessions-8766={}", access.cookie);
        let has = |text: &str| {
            let value = HeaderValue::from_str(text).expect("a value");
            access.has_cookie(&HeaderMap::from_iter([(COOKIE, value)]))
        };
        assert!(has(&good));
        assert!(has(&format!("a=b; {good}; c=d")));
        for bad in ["", "sessions-8766=", "sessions-8766", &good[..good.len() - 1]] {
            assert!(!has(bad), "{bad}");
        }
        assert!(!has(&good.replace("8766", "8767")));
    }
}
