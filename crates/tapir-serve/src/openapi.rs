//! `/openapi.json`: the HTTP interface, described by the code that answers it.

use std::sync::Arc;

use axum::Router;
use serde_json::json;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Components, OpenApi};
use utoipa::{Modify, OpenApi as _};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::State;
use crate::{admin, health, metrics, models, stream, tag, tokenize};

#[derive(utoipa::OpenApi)]
#[openapi(
    info(title = "tapir", description = "Label words while they arrive, and revise only when a learned policy says so."),
    modifiers(&Tokens)
)]
struct Api;

struct Tokens;

impl Modify for Tokens {
    fn modify(&self, api: &mut OpenApi) {
        let bearer = |description: &str| {
            let scheme =
                HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(description));
            SecurityScheme::Http(scheme.build())
        };
        let components = api.components.get_or_insert_with(Components::new);
        components
            .add_security_scheme("bearer", bearer("One of the server's tokens, if it has any."));
        components.add_security_scheme("admin", bearer("The administrator's token."));
    }
}

/// All addresses but those of the page, and their description.
pub(crate) struct Routers {
    /// For those with a token.
    pub(crate) with_token: Router<Arc<State>>,
    /// For the administrator.
    pub(crate) admin: Router<Arc<State>>,
    /// For everybody.
    pub(crate) open: Router<Arc<State>>,
    pub(crate) api: OpenApi,
}

pub(crate) fn routers() -> Routers {
    let with_token = OpenApiRouter::with_openapi(Api::openapi())
        .routes(routes!(stream::open))
        .routes(routes!(tag::tag))
        .routes(routes!(tokenize::tokenize))
        .routes(routes!(models::list))
        .routes(routes!(metrics::show));
    let admin = OpenApiRouter::new().routes(routes!(admin::reload));
    let open = OpenApiRouter::new().routes(routes!(health::alive)).routes(routes!(health::ready));
    let (with_token, mut api) = with_token.split_for_parts();
    let (admin, of_admin) = admin.split_for_parts();
    let (open, of_open) = open.split_for_parts();
    api.merge(of_admin);
    api.merge(of_open);
    Routers { with_token, admin, open, api }
}

/// The description of the HTTP interface, OpenAPI 3.1.
///
/// ```
/// let api = tapir_serve::openapi();
/// assert!(api.contains("/v1/tag"));
/// ```
pub fn openapi() -> String {
    document(&routers().api)
}

/// As JSON, with what cannot be said by attributes: of `text`, `tokens` and `inputs` there is
/// exactly one, and no word is empty.
pub(crate) fn document(api: &OpenApi) -> String {
    let mut api = serde_json::to_value(api).unwrap_or_default();
    let kinds = [("text", "string"), ("tokens", "array"), ("inputs", "array")];
    for (schema, kinds) in [("TagRequest", &kinds[..]), ("Input", &kinds[..2])] {
        let schema = &mut api["components"]["schemas"][schema];
        let one = |given: &str| {
            let kind = |(key, kind): &(&str, &str)| {
                (key.to_string(), json!({ "type": if *key == given { kind } else { "null" } }))
            };
            json!({ "required": [given], "properties": kinds.iter().map(kind).collect::<serde_json::Map<_, _>>() })
        };
        schema["oneOf"] = kinds.iter().map(|(key, _)| one(key)).collect();
        schema["properties"]["tokens"]["items"]["minLength"] = 1.into();
    }
    serde_json::to_string_pretty(&api).unwrap_or_default()
}
