//! The models that are served, by name; they can be read anew while streams go on with the old
//! ones.

use std::sync::{Arc, PoisonError, RwLock};

use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use serde::Serialize;
use tapir::{Config, Model};
use utoipa::ToSchema;

use crate::error::{ApiError, Guarded};
use crate::state::State;
use crate::{Error, Settings};

/// In front of a name: the model that ships, even if a directory of that name holds another.
const EMBEDDED: &str = "embedded:";

/// A model and its name.
pub struct Served {
    /// The name that requests use.
    pub name: String,
    /// The model.
    pub model: Model,
}

/// All models, the default first.
pub(crate) struct Models {
    sources: Vec<(String, String)>,
    served: RwLock<Arc<Vec<Arc<Served>>>>,
}

impl Models {
    pub(crate) fn open(settings: &Settings) -> Result<Self, Error> {
        let mut sources: Vec<(String, String)> =
            settings.models.iter().map(|(name, source)| (name.clone(), source.clone())).collect();
        if sources.is_empty() {
            sources = Model::embedded_names()
                .map(|name| (name.to_owned(), format!("{EMBEDDED}{name}")))
                .collect();
        }
        if let Some(default) = &settings.default_model {
            let Some(at) = sources.iter().position(|(name, _)| name == default) else {
                let names: Vec<_> = sources.iter().map(|(name, _)| name.as_str()).collect();
                let reason = format!(
                    "`default_model` is `{default}`, which is none of {}",
                    names.join(", ")
                );
                return Err(Error::Settings(reason));
            };
            sources[..=at].rotate_right(1);
        }
        let served = load(&sources)?;
        Ok(Self { sources, served: RwLock::new(Arc::new(served)) })
    }

    /// Reads all models anew. Streams keep the model they began with; if one model fails, all stay
    /// as they were.
    pub(crate) fn reload(&self) -> Result<(), Error> {
        let served = load(&self.sources)?;
        *self.served.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(served);
        Ok(())
    }

    pub(crate) fn all(&self) -> Arc<Vec<Arc<Served>>> {
        self.served.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The model of that name, or the default.
    pub(crate) fn get(&self, name: Option<&str>) -> Result<Arc<Served>, ApiError> {
        let all = self.all();
        let found = match name {
            None => all.first(),
            Some(name) => all.iter().find(|served| served.name == name),
        };
        found.cloned().ok_or_else(|| {
            let names: Vec<_> = all.iter().map(|served| served.name.as_str()).collect();
            let reason = format!("no model has that name; there are: {}", names.join(", "));
            ApiError::new(StatusCode::NOT_FOUND, reason)
        })
    }
}

fn load(sources: &[(String, String)]) -> Result<Vec<Arc<Served>>, Error> {
    let open = |(name, source): &(String, String)| {
        let model = match source.strip_prefix(EMBEDDED) {
            Some(name) => Model::embedded_named(name),
            None => Model::find(source),
        };
        let model = model.map_err(|cause| Error::Model { name: name.clone(), cause })?;
        Ok(Arc::new(Served { name: name.clone(), model }))
    };
    sources.iter().map(open).collect()
}

/// What a client can know of a model.
#[derive(Serialize, ToSchema)]
pub(crate) struct ModelInfo {
    /// The name that requests use.
    #[schema(example = "snips")]
    name: String,
    /// The task it was trained on.
    task: String,
    /// Is it the model of requests that name none?
    default: bool,
    /// Every label it can give.
    #[schema(example = json!(["O", "B-artist", "I-artist"]))]
    labels: Vec<String>,
    /// How labels make spans: `iob` or `plain`.
    scheme: String,
    /// The label of a word is given so many words later.
    delay: usize,
    /// The policy's own threshold.
    threshold: f32,
    /// The longest input of the reviser, in words.
    max_length: usize,
    /// Every intent it can give; absent if it knows none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = json!(["PlayMusic", "GetWeather"]))]
    intents: Option<Vec<String>>,
    /// Can it say what is settled?
    calibrated: bool,
}

/// All models.
#[derive(Serialize, ToSchema)]
pub(crate) struct ModelList {
    models: Vec<ModelInfo>,
}

/// The models that are served
#[utoipa::path(get, path = "/v1/models", tag = "models", security((), ("bearer" = [])), responses(
    (status = 200, description = "All models, the default first", body = ModelList),
    Guarded,
))]
pub(crate) async fn list(Shared(state): Shared<Arc<State>>) -> Json<ModelList> {
    let all = state.models.all();
    let info = |(index, served): (usize, &Arc<Served>)| {
        let Config { task, scheme, delay, threshold, max_length, calibration, .. } =
            served.model.config().clone();
        let scheme =
            serde_json::to_value(scheme).ok().and_then(|value| value.as_str().map(str::to_owned));
        ModelInfo {
            name: served.name.clone(),
            task,
            default: index == 0,
            labels: labels(&served.model),
            scheme: scheme.unwrap_or_default(),
            delay,
            threshold,
            max_length,
            intents: served
                .model
                .intents()
                .map(|intents| intents.iter().map(ToString::to_string).collect()),
            calibrated: calibration.labels.is_some(),
        }
    };
    Json(ModelList { models: all.iter().enumerate().map(info).collect() })
}

/// The labels that a model gives to words: not the padding that the authors' models reserve.
fn labels(model: &Model) -> Vec<String> {
    model.labels().iter().map(ToString::to_string).filter(|label| label != "<pad>").collect()
}
