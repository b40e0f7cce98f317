//! Access control: requests from this machine, with the token, of bounded size, which read, or change notes.
//!
//! Pages without data need no token: a page that is opened by the link of an earlier server asks for the new one.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// The header that carries the token.
pub const TOKEN_HEADER: &str = "x-taskscope-token";
/// The longest address that is read: it may list ten thousand tracks one by one.
const MAX_ADDRESS_BYTES: usize = 56 * 1024;

/// What requests need.
#[derive(Clone)]
pub struct Guard {
    /// The token.
    pub token: Arc<str>,
    /// Addresses of pages that have no data of a run in them.
    pub open: &'static [&'static str],
}

/// Admits or refuses a request, and adds the headers that every answer has.
pub async fn check(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let mut response = match refusal(&guard, &request) {
        Some((status, why)) => (status, why).into_response(),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"));
    response
}

fn refusal(guard: &Guard, request: &Request) -> Option<(StatusCode, &'static str)> {
    let uri = request.uri();
    let method = request.method();
    let is_change = uri.path().ends_with("/api/notes") && (method == Method::PUT || method == Method::DELETE);
    if method != Method::GET && method != Method::HEAD && !is_change {
        return Some((StatusCode::METHOD_NOT_ALLOWED, "the viewer only answers questions (GET)\n"));
    }
    if uri.path().len() + uri.query().map_or(0, str::len) > MAX_ADDRESS_BYTES {
        return Some((StatusCode::URI_TOO_LONG, "the address is too long\n"));
    }
    // A page of another site that made its name point here still sends its own name.
    if !host_is_local(request.headers()) {
        return Some((StatusCode::MISDIRECTED_REQUEST, "the viewer answers to localhost only\n"));
    }
    if !origin_is_local(request.headers()) {
        return Some((StatusCode::FORBIDDEN, "the viewer answers its own page only\n"));
    }
    if guard.open.contains(&uri.path()) {
        return None;
    }
    let given = request.headers().get(TOKEN_HEADER).map(|value| value.as_bytes());
    let in_query = || {
        let pairs = uri.query().unwrap_or("").split('&');
        pairs.filter_map(|pair| pair.strip_prefix("token=")).next().map(str::as_bytes)
    };
    // Only pages take the token from their address: a link has nowhere else to put it.
    let given = if uri.path().ends_with('/') { given.or_else(in_query) } else { given };
    if !given.is_some_and(|given| same(given, guard.token.as_bytes())) {
        return Some((
            StatusCode::UNAUTHORIZED,
            "this address needs the token that `taskscope view` printed\n",
        ));
    }
    None
}

fn host_is_local(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) {
        (Some(host), None) => name_is_local(host),
        _ => false,
    }
}

fn origin_is_local(headers: &HeaderMap) -> bool {
    match headers.get(header::ORIGIN).map(|origin| origin.to_str()) {
        None => true,
        Some(Ok(origin)) => origin.strip_prefix("http://").is_some_and(name_is_local),
        Some(Err(_)) => false,
    }
}

/// Whether `name[:port]` names this machine. Any port: it may be the near end of an ssh tunnel.
fn name_is_local(name: &str) -> bool {
    let name = match name.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => name,
    };
    matches!(name.to_ascii_lowercase().as_str(), "127.0.0.1" | "localhost" | "[::1]")
}

/// Compares in a time that is independent of the first difference.
fn same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len() && left.iter().zip(right).fold(0, |differ, (l, r)| differ | (l ^ r)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_local() {
        for name in ["127.0.0.1", "127.0.0.1:80", "localhost:8000", "LOCALHOST", "[::1]:9"] {
            assert!(name_is_local(name), "{name}");
        }
        for name in [
            "",
            "evil.example",
            "127.0.0.1.evil.example:80",
            "localhost:8000.evil.example",
            "::1",
            "[::1]x:9",
        ] {
            assert!(!name_is_local(name), "{name}");
        }
    }
}
