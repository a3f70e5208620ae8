//! Mooncake's traces: arrival times, lengths, and ids of the prompt's blocks. There is no text in
//! them, so text is made: two requests whose first n ids agree have the same first n blocks.

use serde_json::Value;

use super::items::{Item, lines};
use super::plan::{Bad, Options, Prompt, Request};
use super::words::block;

/// Seed of the made text.
const SEED: u64 = 1;
/// Set in the id of a block that the trace names no id for, so that no other block has it.
const UNNAMED: u64 = 1 << 63;

/// The request of each line of a file.
pub(super) fn read(text: &str, options: &Options) -> Vec<Result<Vec<Request>, Bad>> {
    lines(text)
        .into_iter()
        .map(|item| one(item, options).map(|request| vec![request]))
        .collect()
}

fn one(item: Item, options: &Options) -> Result<Request, Bad> {
    let (line, value) = item?;
    let bad = |message: String| Bad { line, message };
    let shape = r#"a line is {"timestamp": 0, "input_length": 6755, "output_length": 500, "hash_ids": [0, 1, ...]}"#;
    let count = |name: &str| {
        value[name]
            .as_u64()
            .filter(|n| *n > 0)
            .ok_or_else(|| bad(format!("`{name}` is no whole number from 1; {shape}")))
    };
    let at_ms = value["timestamp"]
        .as_f64()
        .filter(|at| *at >= 0.0)
        .ok_or_else(|| bad(format!("`timestamp` is no number of milliseconds; {shape}")))?;
    let (input, output) = (count("input_length")?, count("output_length")?);
    let ids = ids(&value["hash_ids"])
        .ok_or_else(|| bad(format!("`hash_ids` is no list of whole numbers; {shape}")))?;
    let size = options.block_tokens;
    let whole = input / size;
    let blocks = input.div_ceil(size);
    let named = ids.len() as u64;
    if named != blocks && named != whole {
        return Err(bad(format!(
            "{named} hash_ids for input_length {input}: blocks of {size} tokens make {blocks} (give --block-tokens if the \
             trace has others)"
        )));
    }
    let mut text = String::new();
    let mut words = 0;
    for at in 0..blocks {
        let id = ids
            .get(at as usize)
            .copied()
            .unwrap_or(UNNAMED | line as u64);
        // Rounded as a whole and not block by block, so that errors do not add up; whole blocks end
        // at the same word in every request.
        let until = ((at + 1) * size).min(input) as f64 / options.tokens_per_word;
        let until = (until.round() as usize).max(words);
        text.push_str(&block(SEED, id, until - words));
        words = until;
    }
    Ok(Request {
        line,
        prompt: Prompt::Text(text),
        tokens: input,
        answer_tokens: Some(output),
        at_ms: Some(at_ms),
    })
}

fn ids(value: &Value) -> Option<Vec<u64>> {
    value.as_array()?.iter().map(Value::as_u64).collect()
}
