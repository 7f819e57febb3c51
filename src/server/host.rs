//! Checks the headers `Host` and `Origin`. A page of another site, or a page whose name was rebound
//! to this machine, must not reach the server.
//!
//! Only a few known hosts are allowed, so both headers are compared with them as whole values.
//! Anything that is not exactly a host and a port is refused, regardless of how a browser or a
//! library would interpret it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hyper::header::{HOST, HeaderName, ORIGIN};
use hyper::{HeaderMap, StatusCode, Uri};

/// The reason for refusing a request before it is read.
pub(super) type HttpRefusal = (StatusCode, &'static str);

/// A host in the form used in a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
enum HostName {
    Address(IpAddr),
    /// In lower case.
    Name(String),
}

/// Decides which hosts and origins a request may name.
#[derive(Debug, Clone)]
pub(super) struct HostFilter {
    /// `None` allows every host, because the names by which other machines call this one are
    /// unknown. A page that was rebound to this machine has no token.
    hosts: Option<Vec<HostName>>,
}

impl HostFilter {
    /// Creates the filter of a server that listens on `address`.
    pub(super) fn new(address: SocketAddr) -> Self {
        let ip = address.ip();
        if ip.is_unspecified() {
            return Self { hosts: None };
        }
        let mut hosts = loopback_hosts();
        hosts.push(HostName::Address(ip));
        Self { hosts: Some(hosts) }
    }

    /// Refuses a request that does not name exactly one allowed host, or that comes from a page of
    /// another machine.
    pub(super) fn check_headers(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), HttpRefusal> {
        const BAD_HOST: HttpRefusal =
            (StatusCode::BAD_REQUEST, "exactly one Host header with a host and a port is needed");
        const OTHER_HOST: HttpRefusal =
            (StatusCode::FORBIDDEN, "the Host header does not name this server");
        const BAD_ORIGIN: HttpRefusal =
            (StatusCode::FORBIDDEN, "requests from other sites are refused");

        let host = single_value(headers, &HOST).and_then(parse_authority).ok_or(BAD_HOST)?;
        if !self.is_allowed(&host) {
            return Err(OTHER_HOST);
        }
        // A request to a proxy also names the host in its URI.
        if let Some(authority) = uri.authority() {
            let host = parse_authority(authority.as_str()).ok_or(BAD_HOST)?;
            if !self.is_allowed(&host) {
                return Err(OTHER_HOST);
            }
        }

        if !headers.contains_key(ORIGIN) {
            return Ok(());
        }
        let origin = single_value(headers, &ORIGIN).and_then(parse_origin).ok_or(BAD_ORIGIN)?;
        if loopback_hosts().contains(&origin) { Ok(()) } else { Err(BAD_ORIGIN) }
    }

    /// Returns true if a request may name this host.
    fn is_allowed(&self, host: &HostName) -> bool {
        self.hosts.as_ref().is_none_or(|hosts| hosts.contains(host))
    }
}

/// Returns the names that always refer to this machine.
fn loopback_hosts() -> Vec<HostName> {
    vec![
        HostName::Name("localhost".to_owned()),
        HostName::Address(Ipv4Addr::LOCALHOST.into()),
        HostName::Address(Ipv6Addr::LOCALHOST.into()),
    ]
}

/// Returns the text of a header that occurs exactly once.
pub(super) fn single_value<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    if values.next().is_some() {
        return None;
    }
    first.to_str().ok()
}

/// Parses `http://host` or `http://host:port`. Returns `None` for everything else, including
/// `null`.
fn parse_origin(text: &str) -> Option<HostName> {
    parse_authority(text.strip_prefix("http://")?)
}

/// Parses `host` or `host:port`, where an IPv6 address is in brackets.
fn parse_authority(text: &str) -> Option<HostName> {
    let (host, after_host) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, after_host) = rest.split_once(']')?;
            (HostName::Address(address.parse::<Ipv6Addr>().ok()?.into()), after_host)
        }
        None => {
            let end = text.find(':').unwrap_or(text.len());
            let (name, after_host) = text.split_at(end);
            (parse_name(name)?, after_host)
        }
    };
    if after_host.is_empty() {
        return Some(host);
    }
    is_port(after_host.strip_prefix(':')?).then_some(host)
}

/// Parses an IPv4 address or the name of a host.
fn parse_name(name: &str) -> Option<HostName> {
    if let Ok(address) = name.parse::<Ipv4Addr>() {
        return Some(HostName::Address(address.into()));
    }
    let is_name = !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    is_name.then(|| HostName::Name(name.to_ascii_lowercase()))
}

/// Returns true if a text is the number of a port.
fn is_port(text: &str) -> bool {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number && text.parse::<u16>().is_ok_and(|port| port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn status(address: &str, headers: &[(HeaderName, &'static str)]) -> u16 {
        let filter = HostFilter::new(address.parse().expect("address"));
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name, HeaderValue::from_static(value));
        }
        match filter.check_headers(&Uri::from_static("/mcp"), &map) {
            Ok(()) => 200,
            Err((status, _)) => status.as_u16(),
        }
    }

    fn host(address: &str, host: &'static str) -> u16 {
        status(address, &[(HOST, host)])
    }

    fn origin(origin: &'static str) -> u16 {
        status("127.0.0.1:80", &[(HOST, "localhost"), (ORIGIN, origin)])
    }

    #[test]
    fn hosts_are_those_of_the_address() {
        for name in [
            "localhost",
            "LOCALHOST:1",
            "127.0.0.1:65535",
            "[::1]",
            "[::1]:80",
            "[0:0:0:0:0:0:0:1]:80",
        ] {
            assert_eq!(host("127.0.0.1:80", name), 200, "{name}");
        }
        for name in
            ["evil.example", "localhost.", "localhost.evil.example", "127.0.0.2", "[::2]", "127.1"]
        {
            assert_eq!(host("127.0.0.1:80", name), 403, "{name}");
        }
        for name in [
            "",
            ":80",
            "localhost:",
            "localhost:0",
            "localhost:99999",
            "localhost:65536",
            "localhost:abc",
            "localhost:+80",
            "localhost:80:80",
            "localhost/x",
            "localhost, localhost",
            "user@localhost",
            "http://localhost",
            " localhost",
            "::1",
            "[::1",
            "[::1]x",
            "[::1].evil.example",
            "[127.0.0.1]",
            "[[::1]]",
            "[::1%25lo]",
        ] {
            assert_eq!(host("127.0.0.1:80", name), 400, "{name}");
        }
        assert_eq!(status("127.0.0.1:80", &[]), 400);
        assert_eq!(status("127.0.0.1:80", &[(HOST, "localhost"), (HOST, "localhost")]), 400);
        assert_eq!(host("192.0.2.7:80", "192.0.2.7:8080"), 200);
        assert_eq!(host("192.0.2.7:80", "192.0.2.8"), 403);
        assert_eq!(host("0.0.0.0:80", "any.example:80"), 200);
        assert_eq!(host("0.0.0.0:80", "any.example:abc"), 400);
    }

    #[test]
    fn origins_are_pages_of_this_machine() {
        for page in
            ["http://localhost", "http://localhost:5173", "http://127.0.0.1:1", "http://[::1]:80"]
        {
            assert_eq!(origin(page), 200, "{page}");
        }
        for page in [
            "",
            "null",
            "http://evil.example",
            "http://localhost.evil.example",
            "http://localhost@evil.example",
            "http://[::1].evil.example",
            "http://localhost:abc",
            "http://localhost:99999",
            "http://localhost/",
            "http://localhost http://localhost",
            "https://localhost",
            "file://localhost",
            "localhost",
            "http://",
        ] {
            assert_eq!(origin(page), 403, "{page}");
        }
        let twice =
            [(HOST, "localhost"), (ORIGIN, "http://localhost"), (ORIGIN, "http://localhost")];
        assert_eq!(status("127.0.0.1:80", &twice), 403);
    }
}
