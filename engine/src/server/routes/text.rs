//! Text to tokens and back.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::dispatch::{Answer, read_with};
use crate::server::error::json_response;
use crate::server::request::{Fields, render_prompt};
use crate::server::{ApiError, App, Backend};
use crate::tokenizer::Specials;

async fn answer(
    app: &Arc<App>,
    request: Request,
    read: fn(&Value, &dyn Backend) -> Result<Value, ApiError>,
) -> Answer {
    let (_, value) = read_with(app, request, read).await?;
    Ok(json_response(StatusCode::OK, &value))
}

/// `POST /tokenize`.
pub async fn tokenize(State(app): State<Arc<App>>, request: Request) -> Answer {
    answer(&app, request, to_tokens).await
}

/// `POST /detokenize`.
pub async fn detokenize(State(app): State<Arc<App>>, request: Request) -> Answer {
    answer(&app, request, to_text).await
}

/// `POST /apply-template`.
pub async fn apply_template(State(app): State<Arc<App>>, request: Request) -> Answer {
    answer(&app, request, |body, backend| {
        Ok(json!({ "prompt": render_prompt(body, backend)? }))
    })
    .await
}

fn to_tokens(body: &Value, backend: &dyn Backend) -> Result<Value, ApiError> {
    let names = ["content", "add_special", "parse_special", "with_pieces"];
    let fields = Fields::new(body, &[&names])?;
    let text = fields
        .str("content")?
        .ok_or_else(|| ApiError::invalid("`content` is missing; expected a string"))?;
    let specials = if fields.bool("parse_special")?.unwrap_or(true) {
        Specials::Parse
    } else {
        Specials::AsText
    };
    let tokenizer = backend.tokenizer();
    let mut ids = tokenizer.encode(text, specials);
    if fields.bool("add_special")?.unwrap_or(false)
        && let Some(bos) = tokenizer.bos_to_add()
    {
        ids.insert(0, bos);
    }
    if !fields.bool("with_pieces")?.unwrap_or(false) {
        return Ok(json!({ "tokens": ids }));
    }
    let pieces: Vec<Value> = ids
        .iter()
        .map(|id| {
            let bytes = tokenizer.token_bytes(*id);
            match std::str::from_utf8(bytes) {
                Ok(piece) => json!({ "id": id, "piece": piece }),
                Err(_) => json!({ "id": id, "piece": bytes }),
            }
        })
        .collect();
    Ok(json!({ "tokens": pieces }))
}

fn to_text(body: &Value, backend: &dyn Backend) -> Result<Value, ApiError> {
    let fields = Fields::new(body, &[&["tokens"]])?;
    let tokenizer = backend.tokenizer();
    let vocab = tokenizer.vocab_size();
    let ids = fields
        .array("tokens")?
        .ok_or_else(|| ApiError::invalid("`tokens` is missing; expected a list of token ids"))?
        .iter()
        .enumerate()
        .map(|(index, value)| {
            value
                .as_u64()
                .and_then(|id| u32::try_from(id).ok())
                .filter(|id| (*id as usize) < vocab)
                .ok_or_else(|| {
                    ApiError::invalid(format!(
                        "`tokens[{index}]` must be a token id below {vocab}, got {value}"
                    ))
                })
        })
        .collect::<Result<Vec<u32>, ApiError>>()?;
    let bytes = tokenizer.decode(&ids);
    Ok(json!({ "content": String::from_utf8_lossy(&bytes) }))
}
