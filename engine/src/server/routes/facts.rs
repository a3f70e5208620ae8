//! What the server says about itself.

use std::fmt::Write;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode, header};
use serde_json::{Value, json};

use super::dispatch::Answer;
use crate::sampling::SamplingParams;
use crate::scheduler::{EngineStats, SlotWork};
use crate::server::App;
use crate::server::error::json_response;
use crate::server::reply::{fingerprint, settings};

fn ok(value: &Value) -> Response<Body> {
    json_response(StatusCode::OK, value)
}

/// `GET /health`: 503 until the model is loaded.
pub async fn health(State(app): State<Arc<App>>) -> Answer {
    app.backend_for_work()?;
    Ok(ok(&json!({ "status": "ok" })))
}

/// `GET /v1/models`.
pub async fn models(State(app): State<Arc<App>>) -> Answer {
    let backend = app.backend()?;
    Ok(ok(&json!({
        "object": "list",
        "data": [{
            "id": app.model_name(&**backend),
            "object": "model",
            "created": app.started_unix_seconds(),
            "owned_by": "palindrome",
            "meta": {
                "architecture": backend.architecture(),
                "n_vocab": backend.tokenizer().vocab_size(),
                "n_ctx": backend.n_ctx(),
            },
        }],
    })))
}

/// `GET /props`.
pub async fn props(State(app): State<Arc<App>>) -> Answer {
    let backend = app.backend()?;
    let runtime = backend.runtime();
    let mut params = settings(&SamplingParams::default());
    params["n_predict"] = json!(-1);
    params["max_tokens"] = json!(-1);
    params["stop"] = json!([]);
    params["stream"] = json!(false);
    Ok(ok(&json!({
        "default_generation_settings": { "n_ctx": backend.n_ctx(), "params": params },
        "total_slots": backend.stats().slots.len(),
        "model_alias": app.model_name(&**backend),
        "model_path": app.options.model_path,
        "architecture": backend.architecture(),
        "modalities": { "vision": false, "audio": false },
        "chat_template": backend.template().map(crate::chat::ChatTemplate::source),
        "build_info": fingerprint(),
        "n_ctx": backend.n_ctx(),
        "isa": runtime.isa,
        "activations": runtime.activations,
        "kv_type": runtime.kv_type,
        "threads": runtime.threads,
        "exactness": "exact",
    })))
}

/// `GET /slots`: what each slot works on, in llama-server's names.
pub async fn slots(State(app): State<Arc<App>>) -> Answer {
    let backend = app.backend()?;
    let stats = backend.stats();
    let slots: Vec<Value> = stats
        .slots
        .iter()
        .enumerate()
        .map(|(id, work)| slot(id, backend.n_ctx(), *work))
        .collect();
    Ok(ok(&Value::from(slots)))
}

fn slot(id: usize, n_ctx: usize, work: Option<SlotWork>) -> Value {
    let mut slot = json!({ "id": id, "n_ctx": n_ctx, "is_processing": work.is_some() });
    if let Some(work) = work {
        slot["n_prompt_tokens"] = json!(work.prompt_tokens);
        slot["n_prompt_tokens_cache"] = json!(work.cached_tokens);
        slot["n_prompt_tokens_processed"] = json!(work.computed_tokens);
        slot["n_decoded"] = json!(work.generated_tokens);
    }
    slot
}

/// `GET /metrics`: Prometheus' text format, llama-server's names.
pub async fn metrics(State(app): State<Arc<App>>) -> Answer {
    let text = prometheus(&app.backend()?.stats());
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("text/plain; version=0.0.4"),
    );
    Ok(response)
}

fn prometheus(stats: &EngineStats) -> String {
    let rows: [(&str, &str, &str, f64); 14] = [
        (
            "prompt_tokens_total",
            "counter",
            "Prompt tokens computed.",
            stats.prompt_tokens as f64,
        ),
        (
            "prompt_tokens_cached_total",
            "counter",
            "Prompt tokens taken from the cache.",
            stats.cached_tokens as f64,
        ),
        (
            "prompt_seconds_total",
            "counter",
            "Seconds spent on prompts, added up over requests.",
            stats.prompt_seconds,
        ),
        (
            "tokens_predicted_total",
            "counter",
            "Tokens generated.",
            stats.generated_tokens as f64,
        ),
        (
            "tokens_predicted_seconds_total",
            "counter",
            "Seconds spent generating, added up over requests.",
            stats.generate_seconds,
        ),
        (
            "passes_total",
            "counter",
            "Forward passes; requests share them.",
            stats.passes as f64,
        ),
        (
            "passes_seconds_total",
            "counter",
            "Seconds spent in forward passes and in choosing tokens, by the clock.",
            stats.pass_seconds,
        ),
        (
            "output_rows_screened_total",
            "counter",
            "Logits that were asked for in passes with a screened output matrix.",
            stats.screened.screened as f64,
        ),
        (
            "output_rows_computed_total",
            "counter",
            "Of these, computed in full.",
            stats.screened.computed as f64,
        ),
        (
            "requests_finished_total",
            "counter",
            "Requests finished.",
            stats.finished as f64,
        ),
        (
            "requests_cancelled_total",
            "counter",
            "Requests cancelled by their callers.",
            stats.cancelled as f64,
        ),
        (
            "requests_processing",
            "gauge",
            "Requests being worked on.",
            stats.running as f64,
        ),
        (
            "slots",
            "gauge",
            "Requests that can be worked on at once.",
            stats.slots.len() as f64,
        ),
        (
            "requests_deferred",
            "gauge",
            "Requests waiting.",
            stats.waiting as f64,
        ),
    ];
    let mut out = String::new();
    for (name, kind, help, value) in rows {
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "# HELP palindrome_{name} {help}\n# TYPE palindrome_{name} {kind}\npalindrome_{name} {value}\n"
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_prometheus_text() {
        let stats = EngineStats {
            prompt_tokens: 12,
            generate_seconds: 0.5,
            ..EngineStats::default()
        };
        let text = prometheus(&stats);
        assert!(text.starts_with(
            "# HELP palindrome_prompt_tokens_total Prompt tokens computed.\n\
             # TYPE palindrome_prompt_tokens_total counter\npalindrome_prompt_tokens_total 12\n"
        ));
        assert!(text.contains("\npalindrome_tokens_predicted_seconds_total 0.5\n"));
        assert_eq!(text.lines().count(), 42);
    }
}
