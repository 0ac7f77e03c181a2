//! The page at `/`, where a stream can be watched, and the documentation at `/docs`: embedded,
//! nothing from elsewhere.

use axum::Router;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;

/// Scripts and styles from here alone, and nobody else's frame around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

pub(crate) fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let file = |kind: &'static str, content: &'static str| {
        get(move || async move {
            let headers = [
                (header::CONTENT_TYPE, kind),
                (header::CONTENT_SECURITY_POLICY, POLICY),
                (header::REFERRER_POLICY, "no-referrer"),
                (header::CACHE_CONTROL, "no-cache"),
            ];
            (headers, content).into_response()
        })
    };
    Router::new()
        .route("/", file(HTML, include_str!("../page/index.html")))
        .route("/docs", file(HTML, include_str!("../page/docs.html")))
        .route("/assets/page.css", file(CSS, include_str!("../page/page.css")))
        .route("/assets/page.js", file(SCRIPT, include_str!("../page/page.js")))
        .route("/assets/docs.js", file(SCRIPT, include_str!("../page/docs.js")))
}
