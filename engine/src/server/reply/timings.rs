//! `timings` and `usage`.

use serde_json::{Map, Value, json};

use crate::server::generation::Figures;

/// Counts and times in llama-server's names. `predicted_ms` spans the intervals between tokens, so
/// the rates divide by one less than `predicted_n`; a rate without an interval is null.
fn counts(figures: &Figures) -> Map<String, Value> {
    let prompt_n = figures.prompt_n as f64;
    let intervals = figures.predicted_n.saturating_sub(1) as f64;
    let mut out = Map::new();
    out.insert("cache_n".into(), json!(figures.cache_n));
    out.insert("prompt_n".into(), json!(figures.prompt_n));
    out.insert("prompt_ms".into(), json!(figures.prompt_ms));
    out.insert(
        "prompt_per_token_ms".into(),
        json!(ratio(figures.prompt_ms, prompt_n)),
    );
    out.insert(
        "prompt_per_second".into(),
        json!(ratio(prompt_n * 1e3, figures.prompt_ms)),
    );
    out.insert("predicted_n".into(), json!(figures.predicted_n));
    out.insert("predicted_ms".into(), json!(figures.predicted_ms));
    out.insert(
        "predicted_per_token_ms".into(),
        json!(ratio(figures.predicted_ms, intervals)),
    );
    out.insert(
        "predicted_per_second".into(),
        json!(ratio(intervals * 1e3, figures.predicted_ms)),
    );
    out
}

/// The figures of a finished answer.
fn timings(figures: &Figures) -> Value {
    let mut out = counts(figures);
    out.insert("seed".into(), json!(figures.seed));
    if let Some(faults) = figures.faults {
        out.insert("faults".into(), json!(faults));
    }
    out.insert("exactness".into(), json!("exact"));
    out.insert(
        "token_hashes".into(),
        json!({ "prompt": figures.prompt_hash, "generated": figures.generated_hash }),
    );
    Value::Object(out)
}

/// Puts the counts and times so far into an event of an answer that goes on
/// (`timings_per_token`).
pub fn so_far(event: &mut Value, figures: &Figures) {
    event["timings"] = Value::Object(counts(figures));
}

/// Puts the figures into a whole answer or a stream's last event; the hashes stand beside
/// `timings` too, for readers that know llama-server's timings alone.
pub fn close(event: &mut Value, figures: &Figures) {
    event["timings"] = timings(figures);
    event["token_hashes"] = event["timings"]["token_hashes"].clone();
}

/// OpenAI's `usage`.
pub fn usage(figures: &Figures) -> Value {
    let prompt = figures.cache_n + figures.prompt_n;
    json!({
        "completion_tokens": figures.predicted_n,
        "prompt_tokens": prompt,
        "total_tokens": prompt + figures.predicted_n,
        "prompt_tokens_details": { "cached_tokens": figures.cache_n },
    })
}

fn ratio(above: f64, below: f64) -> Option<f64> {
    (below > 0.0).then(|| above / below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_count_intervals_and_are_null_without_one() {
        let mut figures = Figures {
            cache_n: 2,
            prompt_n: 10,
            prompt_ms: 5.0,
            predicted_n: 5,
            predicted_ms: 8.0,
            seed: 7,
            prompt_hash: "p".into(),
            generated_hash: "g".into(),
            faults: None,
        };
        let out = timings(&figures);
        assert_eq!(out["prompt_per_second"], 2000.0);
        assert_eq!(out["predicted_per_token_ms"], 2.0);
        assert_eq!(out["predicted_per_second"], 500.0);
        assert!(out.get("faults").is_none());
        assert!(out.get("experts").is_none());
        figures.predicted_n = 1;
        figures.predicted_ms = 0.0;
        assert_eq!(timings(&figures)["predicted_per_second"], Value::Null);
        assert_eq!(usage(&figures)["total_tokens"], 13);
    }
}
