//! Who is served: bearer tokens, hosts, origins of web pages, requests per second.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State as Shared};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq;

use crate::clients::Peer;
use crate::error::ApiError;
use crate::state::State;
use crate::{Settings, tag};

/// The protocol of our streams. A browser can send no header with a WebSocket, so that it gives its
/// token as a second protocol, `bearer.TOKEN`.
pub(crate) const PROTOCOL: &str = "tapir.v1";

/// Lets a request pass, or refuses it: the rate of its client, its host, and the origin of its
/// page.
pub(crate) async fn client(
    Shared(state): Shared<Arc<State>>,
    Extension(peer): Extension<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    let settings = &state.settings;
    let peer = state.clients.behind_proxy(peer, request.headers());
    request.extensions_mut().insert(peer.clone());
    let allowed = peer
        .client
        .count_request()
        .and_then(|()| check_host(&request, settings))
        .and_then(|()| check_origin(&request, &settings.origins))
        .and_then(|()| check_length(request.headers(), settings.limits.body_bytes));
    pass(allowed, &state, request, next).await
}

/// Lets a request pass, or refuses it: its token.
pub(crate) async fn token(
    Shared(state): Shared<Arc<State>>,
    request: Request,
    next: Next,
) -> Response {
    let allowed = check_token(request.headers(), &state.settings.tokens);
    pass(allowed, &state, request, next).await
}

async fn pass(
    allowed: Result<(), ApiError>,
    state: &State,
    request: Request,
    next: Next,
) -> Response {
    match allowed {
        Ok(()) => next.run(request).await,
        Err(refusal) => {
            state.metrics.refused.inc();
            refusal.into_response()
        }
    }
}

/// One of the tokens must be given, if there are any.
pub(crate) fn check_token(headers: &HeaderMap, tokens: &[String]) -> Result<(), ApiError> {
    if tokens.is_empty() {
        return Ok(());
    }
    let given = given_token(headers).unwrap_or_default();
    // Every token is compared to its end, so that the time taken says nothing about which is nearly
    // right.
    let matches = tokens.iter().fold(subtle::Choice::from(0), |matches, token| {
        matches | token.as_bytes().ct_eq(given.as_bytes())
    });
    if matches.into() {
        return Ok(());
    }
    let reason = "a bearer token is needed: Authorization: Bearer TOKEN";
    Err(ApiError::new(StatusCode::UNAUTHORIZED, reason))
}

fn given_token(headers: &HeaderMap) -> Option<&str> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then_some(token.trim());
    }
    let mut protocols = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    protocols.find_map(|value| {
        value.to_str().ok()?.split(',').find_map(|protocol| protocol.trim().strip_prefix("bearer."))
    })
}

/// A body that is announced to be too large is not waited for; one that is not announced is
/// measured as it comes.
fn check_length(headers: &HeaderMap, limit: usize) -> Result<(), ApiError> {
    let length =
        headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: u64| length > limit as u64) && !tag::is_lines(headers) {
        let reason =
            format!("the body is longer than {limit} bytes; send less, or lines of NDJSON");
        return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, reason));
    }
    Ok(())
}

/// The host that the client believes to speak to.
fn host(request: &Request) -> Option<&str> {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    // The address of a request may be absolute.
    request.uri().authority().map(Authority::as_str).or(host)
}

/// A page of a name that was made to point here (DNS rebinding) counts as a page of ours for a
/// browser, so that only known names are served. Numbers cannot be made to point elsewhere, and
/// whoever needs a token has none.
fn check_host(request: &Request, settings: &Settings) -> Result<(), ApiError> {
    let Some(host) = host(request).filter(|_| settings.tokens.is_empty()) else { return Ok(()) };
    let refuse = || {
        let reason = "this server is not known by that name; the setting `hosts` allows it";
        Err(ApiError::new(StatusCode::FORBIDDEN, reason))
    };
    let Ok(authority) = host.parse::<Authority>() else { return refuse() };
    let name = authority.host().trim_end_matches('.').to_ascii_lowercase();
    let number = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
    let local = name == "localhost" || name.ends_with(".localhost");
    let known = |known: &String| known == "*" || known.eq_ignore_ascii_case(&name);
    if number || local || settings.hosts.iter().any(known) { Ok(()) } else { refuse() }
}

/// A web page of another host may use the server only if its origin is allowed.
fn check_origin(request: &Request, allowed: &[String]) -> Result<(), ApiError> {
    let Some(origin) = request.headers().get(header::ORIGIN) else { return Ok(()) };
    let refuse = || {
        let reason = "pages of this origin are not allowed; the setting `origins` allows them";
        Err(ApiError::new(StatusCode::FORBIDDEN, reason))
    };
    let Ok(origin) = origin.to_str() else { return refuse() };
    let own = origin.split_once("://").is_some_and(|(_, at)| Some(at) == host(request));
    if own || allowed.iter().any(|allowed| allowed == "*" || allowed == origin) {
        Ok(())
    } else {
        refuse()
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn a_token_is_taken_from_either_place() {
        let tokens = ["0123456789abcdef".to_owned(), "fedcba9876543210".to_owned()];
        let ok = |pairs| check_token(&headers(pairs), &tokens).is_ok();
        assert!(ok(&[("authorization", "Bearer fedcba9876543210")]));
        assert!(ok(&[("authorization", "bearer 0123456789abcdef")]));
        assert!(ok(&[("sec-websocket-protocol", "tapir.v1, bearer.0123456789abcdef")]));
        assert!(!ok(&[("authorization", "Bearer 0123456789abcde")]));
        assert!(!ok(&[("authorization", "Basic 0123456789abcdef")]));
        assert!(!ok(&[("sec-websocket-protocol", "tapir.v1")]));
        assert!(!ok(&[]));
        assert!(check_token(&headers(&[]), &[]).is_ok());
    }

    #[test]
    fn pages_of_other_hosts_are_refused_unless_allowed() {
        let request = |uri: &str, pairs| {
            let mut request = Request::builder().uri(uri).body(axum::body::Body::empty()).unwrap();
            *request.headers_mut() = headers(pairs);
            request
        };
        let own = request("/", &[("origin", "http://127.0.0.1:8642"), ("host", "127.0.0.1:8642")]);
        let own2 = request("https://tapir.example/", &[("origin", "https://tapir.example")]);
        let other = request("/", &[("origin", "https://evil.example"), ("host", "127.0.0.1:8642")]);
        assert!(check_origin(&own, &[]).is_ok());
        assert!(check_origin(&own2, &[]).is_ok());
        assert!(check_origin(&other, &[]).is_err());
        assert!(check_origin(&other, &["https://evil.example".into()]).is_ok());
        assert!(check_origin(&other, &["*".into()]).is_ok());
        assert!(check_origin(&request("/", &[]), &[]).is_ok());
    }

    #[test]
    fn names_that_are_not_known_are_refused_unless_there_are_tokens() {
        let open = Settings { hosts: vec!["tapir.example".into()], ..Settings::default() };
        let asked = |settings: &Settings, uri: &str, host: Option<&str>| {
            let mut request = Request::builder().uri(uri);
            if let Some(host) = host {
                request = request.header("host", host);
            }
            check_host(&request.body(axum::body::Body::empty()).unwrap(), settings).is_ok()
        };
        for known in [
            "localhost:8642",
            "LOCALHOST",
            "a.localhost",
            "127.0.0.1:80",
            "[::1]:8642",
            "192.0.2.7",
            "Tapir.Example:443",
            "tapir.example.",
        ] {
            assert!(asked(&open, "/", Some(known)), "{known}");
        }
        for unknown in
            ["evil.example", "evil.example:8642", "127.0.0.1.evil.example", "x", "", "a b"]
        {
            assert!(!asked(&open, "/", Some(unknown)), "{unknown}");
        }
        // An absolute address counts, whatever the header says; no browser sends neither.
        assert!(!asked(&open, "http://evil.example/", Some("localhost")));
        assert!(asked(&open, "/", None));
        let with_token =
            Settings { tokens: vec!["0123456789abcdef".into()], ..Settings::default() };
        assert!(asked(&with_token, "/", Some("evil.example")));
        let any = Settings { hosts: vec!["*".into()], ..Settings::default() };
        assert!(asked(&any, "/", Some("evil.example")));
    }
}
