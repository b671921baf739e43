//! Answers as bytes, with the headers that all of them have.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;

#[derive(Debug)]
pub(crate) struct Reply {
    status: StatusCode,
    kind: &'static str,
    body: Bytes,
    cookie: Option<HeaderValue>,
}

/// Headers of all answers: the page may load from here only, no other page may use any of it, and nothing is
/// kept on disk.
const HEADERS: [(&str, &str); 7] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("cache-control", "no-store"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
];

impl Reply {
    /// A file of the page.
    pub(crate) fn file(kind: &'static str, text: &'static str) -> Self {
        let body = Bytes::from_static(text.as_bytes());
        Reply { status: StatusCode::OK, kind, body, cookie: None }
    }

    /// Numbers.
    pub(crate) fn bytes(body: Vec<u8>) -> Self {
        Reply { status: StatusCode::OK, kind: "application/octet-stream", body: body.into(), cookie: None }
    }

    pub(crate) fn json(value: &impl Serialize) -> Self {
        match serde_json::to_vec(value) {
            Ok(body) => {
                Reply { status: StatusCode::OK, kind: "application/json", body: body.into(), cookie: None }
            }
            Err(error) => Reply::refusal(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        }
    }

    /// Why there is no answer.
    pub(crate) fn refusal(status: StatusCode, why: &str) -> Self {
        Reply { status, kind: "text/plain; charset=utf-8", body: format!("{why}\n").into(), cookie: None }
    }

    /// The user is known from now on.
    pub(crate) fn cookie(name: &str, value: &str) -> Self {
        let cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict");
        let cookie = HeaderValue::from_str(&cookie).ok();
        Reply { status: StatusCode::NO_CONTENT, kind: "text/plain", body: Bytes::new(), cookie }
    }

    pub(crate) fn response(self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(self.body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        for (name, value) in HEADERS {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.kind));
        if let Some(cookie) = self.cookie {
            headers.insert(hyper::header::SET_COOKIE, cookie);
        }
        response
    }
}
