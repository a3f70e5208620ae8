//! Conversations as ShareGPT's dumps have them: `conversations`, a list of `from` and `value`.

use serde_json::Value;

use super::conversation::{Turn, requests};
use super::items::{Item, elements};
use super::plan::{Bad, Options, Request};

/// Who speaks, in the words of the dumps and of those that followed them.
const SPEAKERS: [(&str, &str); 8] = [
    ("human", "user"),
    ("user", "user"),
    ("gpt", "assistant"),
    ("chatgpt", "assistant"),
    ("assistant", "assistant"),
    ("bing", "assistant"),
    ("bard", "assistant"),
    ("system", "system"),
];

/// The requests of each conversation of a file.
pub(super) fn read(text: &str, options: &Options) -> Vec<Result<Vec<Request>, Bad>> {
    elements(text)
        .into_iter()
        .map(|item| one(item, options))
        .collect()
}

fn one(item: Item, options: &Options) -> Result<Vec<Request>, Bad> {
    let (line, value) = item?;
    let bad = |message: String| Bad { line, message };
    let shape = r#"a conversation is {"conversations": [{"from": "human", "value": "..."}, {"from": "gpt", "value": "..."}]}"#;
    let Some(said) = value["conversations"].as_array() else {
        return Err(bad(format!("no list `conversations`; {shape}")));
    };
    let mut turns = Vec::with_capacity(said.len());
    for (number, turn) in (1..).zip(said) {
        let (Some(from), Some(text)) = (turn["from"].as_str(), text_of(turn)) else {
            return Err(bad(format!(
                "turn {number} lacks the text `from` or `value`; {shape}"
            )));
        };
        let known = SPEAKERS
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(from));
        let Some((_, role)) = known else {
            let names: Vec<&str> = SPEAKERS.iter().map(|(name, _)| *name).collect();
            return Err(bad(format!(
                "turn {number} is from {from:?}; one of {} is known",
                names.join(", ")
            )));
        };
        turns.push(Turn::text(role, text));
    }
    if turns.first().is_some_and(|t| t.role == "assistant") {
        return Err(bad(
            "the conversation begins with an answer; the first turn is human's or system's"
                .to_owned(),
        ));
    }
    requests(line, &turns, None, options)
}

fn text_of(turn: &Value) -> Option<&str> {
    turn["value"].as_str()
}
