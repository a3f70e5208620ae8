//! The server that is recorded.

use std::net::{TcpStream, ToSocketAddrs};
use std::str::FromStr;
use std::time::Duration;

/// How long connecting may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Where requests go: `http://host[:port][/prefix]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    host: String,
    port: u16,
    prefix: String,
}

impl FromStr for Upstream {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        let right = "give http://HOST:PORT, such as http://127.0.0.1:8080";
        if url.starts_with("https://") {
            return Err(format!(
                "https is not spoken here; {right}, or the plain side of a program that speaks https for you"
            ));
        }
        let Some(rest) = url.strip_prefix("http://") else {
            return Err(format!("{url:?} does not begin with http://; {right}"));
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(format!(
                "a URL with a user name or password is not taken; {right}"
            ));
        }
        if path.contains(['?', '#']) || path.contains(|c: char| c.is_whitespace() || c.is_control())
        {
            return Err(format!("{url:?} has more than a path; {right}"));
        }
        let bracket = authority.rfind(']').unwrap_or(0);
        let (host, port) = match authority.rfind(':').filter(|colon| *colon >= bracket) {
            Some(colon) => (&authority[..colon], authority[colon + 1..].parse().ok()),
            None => (authority, Some(80)),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        match port {
            Some(port) if port > 0 && !host.is_empty() => Ok(Self {
                host: host.to_owned(),
                port,
                prefix: path.trim_end_matches('/').to_owned(),
            }),
            _ => Err(format!("{authority:?} is no host and port; {right}")),
        }
    }
}

impl Upstream {
    /// A connection of its own for one request.
    pub(super) fn connect(&self) -> std::io::Result<TcpStream> {
        let mut last = std::io::Error::other("the name has no address");
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_LIMIT) {
                Ok(stream) => return Ok(stream),
                Err(e) => last = e,
            }
        }
        Err(last)
    }

    /// For the `Host` header.
    pub(super) fn host(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        format!("{host}:{}", self.port)
    }

    /// A client's target below the URL's path.
    pub(super) fn target(&self, target: &str) -> String {
        format!("{}{target}", self.prefix)
    }

    /// As it was given.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.host(), self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_and_wrong_ones_say_what_would_be_right() {
        let of = |url: &str| url.parse::<Upstream>();
        assert_eq!(
            of("http://127.0.0.1:8080").unwrap().url(),
            "http://127.0.0.1:8080"
        );
        assert_eq!(of("http://[::1]:9/a/").unwrap().url(), "http://[::1]:9/a");
        assert_eq!(of("http://box/a").unwrap().target("/v1/x?y"), "/a/v1/x?y");
        for (url, says) in [
            ("https://api", "https is not spoken"),
            ("127.0.0.1:80", "does not begin with http://"),
            ("http://:80", "is no host"),
            ("http://a:0", "is no host"),
            ("http://u:p@a", "user name"),
            ("http://a/?x", "more than a path"),
        ] {
            let error = of(url).unwrap_err();
            assert!(
                error.contains(says) && error.contains("http://127.0.0.1:8080"),
                "{error}"
            );
        }
    }
}
