//! Errors as clients see them: `{"error": {"code", "message", "type"}}`.

use axum::body::Body;
use axum::http::{Response, StatusCode, header};
use serde_json::{Map, Value, json};

use crate::chat::TemplateError;
use crate::scheduler::EngineError;

/// A refused or failed request.
#[derive(Clone, Debug)]
pub struct ApiError {
    status: StatusCode,
    kind: &'static str,
    message: String,
    extra: Map<String, Value>,
}

impl ApiError {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            kind,
            message: message.into(),
            extra: Map::new(),
        }
    }
    /// 400: the request is wrong; the message names the field and what would be right.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", message)
    }
    /// 400: the prompt does not fit the context.
    pub fn context(n_prompt_tokens: usize, n_ctx: usize) -> Self {
        let mut error = Self::new(
            StatusCode::BAD_REQUEST,
            "exceed_context_size_error",
            format!(
                "the request has {n_prompt_tokens} tokens and the context holds {n_ctx}, one of \
                 them for the answer; shorten it or start the server with a larger --ctx"
            ),
        );
        error
            .extra
            .insert("n_prompt_tokens".into(), json!(n_prompt_tokens));
        error.extra.insert("n_ctx".into(), json!(n_ctx));
        error
    }
    /// 401: no key, or a wrong one.
    pub fn unauthorized() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "authentication_error",
            "Invalid API Key",
        )
    }
    /// 404: no such route.
    pub fn not_found(path: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "not_found_error",
            format!("there is no route {path}"),
        )
    }
    /// 405: the route exists with another method.
    pub fn method(method: &str, path: &str) -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "invalid_request_error",
            format!("{path} does not take {method}"),
        )
    }
    /// 408: the body did not arrive in time.
    pub fn body_timeout(seconds: u64) -> Self {
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            "invalid_request_error",
            format!("the request body did not arrive within {seconds} seconds"),
        )
    }
    /// 413: the body is larger than this server takes.
    pub fn too_large(limit_bytes: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "invalid_request_error",
            format!("the request body is larger than this server's limit of {limit_bytes} bytes"),
        )
    }
    /// 500: the server's own fault.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message)
    }
    /// 501: this model or build cannot do it.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, "not_supported_error", message)
    }
    /// 503: not now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "unavailable_error",
            message,
        )
    }
    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        self.status
    }
    /// The message.
    pub fn message(&self) -> &str {
        &self.message
    }
    /// The JSON body.
    pub fn body(&self) -> Value {
        let mut error = Map::new();
        error.insert("code".into(), json!(self.status.as_u16()));
        error.insert("message".into(), json!(self.message));
        error.insert("type".into(), json!(self.kind));
        error.extend(self.extra.clone());
        json!({ "error": error })
    }
    /// The whole response.
    pub fn response(&self) -> Response<Body> {
        json_response(self.status, &self.body())
    }
}

impl axum::response::IntoResponse for ApiError {
    fn into_response(self) -> axum::response::Response {
        self.response()
    }
}

impl From<EngineError> for ApiError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::ContextExceeded {
                n_prompt_tokens,
                n_ctx,
            } => Self::context(n_prompt_tokens, n_ctx),
            EngineError::BadToken { .. } | EngineError::EmptyPrompt => {
                Self::invalid(error.to_string())
            }
            EngineError::QueueFull(_) | EngineError::ShuttingDown => {
                Self::unavailable(error.to_string())
            }
            EngineError::Numeric(_) | EngineError::Internal(_) => Self::internal(error.to_string()),
        }
    }
}

impl From<TemplateError> for ApiError {
    fn from(error: TemplateError) -> Self {
        Self::invalid(format!("`messages`: {error}"))
    }
}

/// A JSON response.
pub(super) fn json_response(status: StatusCode, value: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("application/json; charset=utf-8"),
    );
    response
}
