//! Which requests get no answer: those that pages of other hosts make (also where a name of theirs leads
//! here, "DNS rebinding"), and those without the token.

use crate::token::Token;
use hyper::HeaderMap;
use hyper::header::{COOKIE, HOST, HeaderName, ORIGIN};

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Whether the browser asks this server, by a name of the loopback interface. The port may be another one:
/// that of a tunnel.
pub(crate) fn is_local(headers: &HeaderMap) -> bool {
    one(headers, &HOST).is_some_and(is_loopback)
}

/// Whether a request comes from this server's own page, or from no page.
pub(crate) fn is_own(headers: &HeaderMap) -> bool {
    let site = match headers.get_all(SITE).iter().next() {
        None => true,
        Some(_) => one(headers, &SITE).is_some_and(|site| site == "same-origin" || site == "none"),
    };
    let origin = match headers.get_all(ORIGIN).iter().next() {
        None => true,
        Some(_) => {
            let host = one(headers, &ORIGIN).and_then(|origin| origin.strip_prefix("http://"));
            host.is_some() && host == one(headers, &HOST)
        }
    };
    site && origin
}

/// Whether a request has the cookie of this name with the token.
pub(crate) fn is_user(headers: &HeaderMap, name: &str, token: &Token) -> bool {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(key, _)| *key == name).any(|(_, value)| token.is(value))
}

/// The value of a header that a request must not have twice.
fn one<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

fn is_loopback(host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    };
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok());
    is_port && matches!(name, "127.0.0.1" | "localhost" | "[::1]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let mut headers = HeaderMap::new();
        for (name, value) in pairs.iter().map(pair) {
            headers.append(name, value);
        }
        headers
    }

    #[test]
    fn only_loopback_hosts_are_local() {
        for host in ["127.0.0.1", "127.0.0.1:80", "localhost:1", "[::1]", "[::1]:65535"] {
            assert!(is_local(&headers(&[("host", host)])), "{host}");
        }
        let others = [
            "",
            "example.org",
            "127.0.0.1.example.org:80",
            "localhost:",
            "127.0.0.1:99999",
            "::1",
            "localhost:80:80",
            "[::1]x",
            "127.0.0.1:-1",
            "127.0.0.2",
        ];
        for host in others {
            assert!(!is_local(&headers(&[("host", host)])), "{host}");
        }
        assert!(!is_local(&headers(&[])));
        assert!(!is_local(&headers(&[("host", "localhost"), ("host", "example.org")])));
    }

    #[test]
    fn only_the_page_itself_is_own() {
        let host = ("host", "127.0.0.1:80");
        assert!(is_own(&headers(&[host])));
        assert!(is_own(&headers(&[
            host,
            ("origin", "http://127.0.0.1:80"),
            ("sec-fetch-site", "same-origin")
        ])));
        for other in [
            ("origin", "http://127.0.0.1:81"),
            ("origin", "https://127.0.0.1:80"),
            ("origin", "null"),
            ("origin", "http://example.org"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            assert!(!is_own(&headers(&[host, other])), "{other:?}");
        }
    }
}
