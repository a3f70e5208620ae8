//! The routes and what each does.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, Uri};
use axum::middleware::{self, Next};
use axum::routing::{get, post};
use serde_json::Value;

use super::{facts, text};
use crate::server::body::read_json;
use crate::server::generation::{Generation, Turn};
use crate::server::reply::{ChatReply, CompletionReply, Lists, NativeReply};
use crate::server::request::{ChatBody, CompletionBody, Dialect, random_u64};
use crate::server::respond::respond;
use crate::server::state::unix_seconds;
use crate::server::{ApiError, App, Backend};

pub(super) type Answer = Result<Response<Body>, ApiError>;

/// Routes that need no key, as in llama-server.
const OPEN: [&str; 4] = ["/health", "/v1/health", "/models", "/v1/models"];

/// The router over shared state.
pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/health", get(facts::health))
        .route("/v1/health", get(facts::health))
        .route("/models", get(facts::models))
        .route("/v1/models", get(facts::models))
        .route("/props", get(facts::props))
        .route("/slots", get(facts::slots))
        .route("/metrics", get(facts::metrics))
        .route("/chat/completions", post(chat))
        .route("/v1/chat/completions", post(chat))
        .route("/v1/completions", post(completions))
        .route("/completion", post(native))
        .route("/completions", post(native))
        .route("/tokenize", post(text::tokenize))
        .route("/detokenize", post(text::detokenize))
        .route("/apply-template", post(text::apply_template))
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(middleware::from_fn_with_state(app.clone(), check_key))
        .with_state(app)
}

async fn check_key(State(app): State<Arc<App>>, request: Request, next: Next) -> Answer {
    let open = OPEN.contains(&request.uri().path());
    if !open && !app.options.keys.admits(request.headers()) {
        return Err(ApiError::unauthorized());
    }
    Ok(next.run(request).await)
}

async fn no_route(uri: Uri) -> ApiError {
    ApiError::not_found(uri.path())
}

async fn no_method(request: Request) -> ApiError {
    ApiError::method(request.method().as_str(), request.uri().path())
}

/// Reads the body and works on it off the event loop: rendering and tokenizing may take a while.
pub(super) async fn read_with<T: Send + 'static>(
    app: &Arc<App>,
    request: Request,
    read: impl FnOnce(&Value, &dyn Backend) -> Result<T, ApiError> + Send + 'static,
) -> Result<(Arc<dyn Backend>, T), ApiError> {
    let backend = app.backend_for_work()?.clone();
    let body = read_json(request, app.options.body_limit_bytes).await?;
    tokio::task::spawn_blocking(move || {
        let read = read(&body, &*backend)?;
        Ok((backend, read))
    })
    .await
    .map_err(|_| ApiError::internal("reading the request failed unexpectedly"))?
}

async fn chat(State(app): State<Arc<App>>, request: Request) -> Answer {
    let (backend, body) = read_with(&app, request, ChatBody::read).await?;
    let common = body.common;
    let harmony = backend
        .template()
        .is_some_and(crate::chat::ChatTemplate::is_harmony);
    let turn = if harmony {
        Turn::harmony(backend.tokenizer(), common.stops.clone())
    } else {
        Turn::plain(common.stops.clone())
    };
    let reply = ChatReply {
        id: response_id("chatcmpl-"),
        created: unix_seconds(),
        model: app.model_name(&*backend),
        return_tokens: common.return_tokens,
        logprobs: body.logprobs.is_some(),
        include_usage: common.include_usage,
        role_sent: false,
        waiting: Vec::new(),
    };
    let generation = Generation::start(backend, body.generation, turn)?;
    respond(generation, reply, &common).await
}

async fn completions(State(app): State<Arc<App>>, request: Request) -> Answer {
    let read =
        |body: &Value, backend: &dyn Backend| CompletionBody::read(body, backend, Dialect::OpenAi);
    let (backend, body) = read_with(&app, request, read).await?;
    let common = body.common;
    let reply = CompletionReply {
        id: response_id("cmpl-"),
        created: unix_seconds(),
        model: app.model_name(&*backend),
        return_tokens: common.return_tokens,
        logprobs: body.logprobs.is_some(),
        include_usage: common.include_usage,
        waiting: Lists::default(),
        offset: 0,
        begun: false,
    };
    let generation =
        Generation::start(backend, body.generation, Turn::plain(common.stops.clone()))?;
    respond(generation, reply, &common).await
}

async fn native(State(app): State<Arc<App>>, request: Request) -> Answer {
    let read =
        |body: &Value, backend: &dyn Backend| CompletionBody::read(body, backend, Dialect::Llama);
    let (backend, body) = read_with(&app, request, read).await?;
    let common = body.common;
    let prompt = backend.tokenizer().decode(&body.generation.prompt);
    let reply = NativeReply {
        model: app.model_name(&*backend),
        prompt: String::from_utf8_lossy(&prompt).into_owned(),
        prompt_tokens: body.generation.prompt.len(),
        sampling: body.generation.sampling.clone(),
        max_tokens: common.max_tokens,
        stops: common.stops.clone(),
        stream: common.stream,
        return_tokens: common.return_tokens,
        n_probs: body.logprobs.map(|asked| asked.top),
        slot: 0,
        predicted: 0,
        waiting: Vec::new(),
    };
    let generation =
        Generation::start(backend, body.generation, Turn::plain(common.stops.clone()))?;
    respond(generation, reply, &common).await
}

fn response_id(prefix: &str) -> String {
    format!("{prefix}{:016x}{:016x}", random_u64(), random_u64())
}
