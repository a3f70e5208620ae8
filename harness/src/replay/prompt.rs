//! Prompt token ids of a server that shows none in its answers but tokenises on request, as
//! llama-server does.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{RawResponse, token_hash};

/// Route that turns a chat body into its prompt's text.
const TEMPLATE_ROUTE: &str = "/apply-template";
/// Route that turns text into token ids.
const TOKENIZE_ROUTE: &str = "/tokenize";

/// An answer as it came, as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// HTTP status; absent when none came.
    pub status: Option<u16>,
    /// The response's body.
    pub body: String,
}

impl Exchange {
    fn of(raw: &RawResponse) -> Self {
        Self {
            status: raw.status.filter(|_| raw.error.is_none()),
            body: String::from_utf8_lossy(&raw.body).into_owned(),
        }
    }

    /// The body as JSON where the server answered 200.
    fn json(&self) -> Option<Value> {
        (self.status == Some(200))
            .then(|| serde_json::from_str(&self.body).ok())
            .flatten()
    }
}

/// A line of `prompts.jsonl`: one request's prompt, asked for after the session's last answer, so
/// outside every time that is published. `prompt_tokens` and `prompt_hash` follow from `tokens`
/// alone, so that an audit can compute them again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptRecord {
    /// The request's position in the session.
    pub index: u32,
    /// Body's file name in `workload/`.
    pub body: String,
    /// What `/apply-template` said of the body; absent for a body that holds its prompt as text.
    pub template: Option<Exchange>,
    /// What `/tokenize` said of that text; absent when there was none to ask about.
    pub tokens: Option<Exchange>,
    /// How many ids there are.
    pub prompt_tokens: Option<u64>,
    /// sha256 over the ids, as in `requests.jsonl`.
    pub prompt_hash: Option<String>,
}

impl PromptRecord {
    /// Asks for the prompt ids of a body, through `post(route, body)`. A server without these
    /// routes leaves the ids absent.
    pub fn ask(
        index: u32,
        name: &str,
        body: &[u8],
        mut post: impl FnMut(&str, &[u8]) -> RawResponse,
    ) -> Self {
        let own_text = serde_json::from_slice::<Value>(body)
            .ok()
            .and_then(|v| v["prompt"].as_str().map(str::to_owned));
        let (template, text) = if own_text.is_some() {
            (None, own_text)
        } else {
            let said = Exchange::of(&post(TEMPLATE_ROUTE, body));
            let text = said
                .json()
                .and_then(|v| v["prompt"].as_str().map(str::to_owned));
            (Some(said), text)
        };
        // llama-server tokenises a prompt, templated or plain, with both of these on.
        let tokens = text.map(|text| {
            let ask = json!({ "content": text, "add_special": true, "parse_special": true });
            Exchange::of(&post(TOKENIZE_ROUTE, ask.to_string().as_bytes()))
        });
        Self {
            index,
            body: name.to_owned(),
            template,
            tokens,
            prompt_tokens: None,
            prompt_hash: None,
        }
        .recompute()
    }

    /// The record again, its ids read from the stored answer.
    #[must_use]
    pub fn recompute(&self) -> Self {
        let ids = self.tokens.as_ref().and_then(Exchange::json).and_then(|v| {
            v["tokens"]
                .as_array()?
                .iter()
                .map(|id| id.as_u64().and_then(|id| u32::try_from(id).ok()))
                .collect::<Option<Vec<u32>>>()
        });
        Self {
            prompt_tokens: ids.as_ref().map(|ids| ids.len() as u64),
            prompt_hash: ids.as_deref().map(token_hash),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(status: u16, body: &str) -> RawResponse {
        RawResponse {
            client_cpu_ns: None,
            sent_ns: 0,
            done_ns: 1,
            status: Some(status),
            content_type: None,
            arrivals: Vec::new(),
            error: None,
            body: body.as_bytes().to_vec(),
        }
    }

    #[test]
    fn a_chat_is_templated_then_tokenised_as_the_server_does_it() {
        let mut asked = Vec::new();
        let record = PromptRecord::ask(3, "b.json", br#"{"messages":[]}"#, |route, body| {
            asked.push((route.to_owned(), String::from_utf8(body.to_vec()).unwrap()));
            match route {
                "/apply-template" => said(200, r#"{"prompt":"<s>hi"}"#),
                _ => said(200, r#"{"tokens":[1,70000]}"#),
            }
        });
        assert_eq!(
            asked[0],
            ("/apply-template".into(), r#"{"messages":[]}"#.into())
        );
        assert_eq!(asked[1].0, "/tokenize");
        let ask: Value = serde_json::from_str(&asked[1].1).unwrap();
        assert_eq!(
            ask,
            json!({"content": "<s>hi", "add_special": true, "parse_special": true})
        );
        assert_eq!(record.prompt_tokens, Some(2));
        assert_eq!(record.prompt_hash, Some(token_hash(&[1, 70000])));
        assert_eq!(record.recompute(), record);
    }

    #[test]
    fn plain_text_is_tokenised_alone_and_missing_routes_leave_null() {
        let record = PromptRecord::ask(0, "b.json", br#"{"prompt":"hi"}"#, |route, _| {
            assert_eq!(route, "/tokenize");
            said(404, "{}")
        });
        assert_eq!(record.template, None);
        assert_eq!(record.tokens.as_ref().unwrap().status, Some(404));
        assert_eq!((record.prompt_tokens, record.prompt_hash), (None, None));
        let record = PromptRecord::ask(0, "b.json", br#"{"messages":[]}"#, |_, _| said(404, ""));
        assert_eq!((record.tokens, record.prompt_hash), (None, None));
    }
}
