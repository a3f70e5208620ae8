//! What a comparison of ways looks like, for people and for programs.

use std::path::Path;

use serde_json::{Value, json as object};

use crate::kv::KvType;
use crate::model::ActivationFormat;
use crate::scheduler::token_hash;
use crate::verify::{Comparison, Plan, Row};

/// Hex digits of a hash that the table shows; the JSON has all.
const SHOWN: usize = 16;

/// Lines of one width.
pub(super) struct Table {
    names: Vec<String>,
    lengths: Vec<usize>,
    width: usize,
}

impl Table {
    pub fn new(plan: &Plan) -> Self {
        let names: Vec<String> = plan.ways.iter().map(|way| way.name.clone()).collect();
        let width = names.iter().map(String::len).max().unwrap_or(0).max(4);
        Self {
            names,
            lengths: plan.prompts.iter().map(Vec::len).collect(),
            width,
        }
    }

    /// `None`: the base way.
    pub fn name(&self, way: Option<usize>) -> &str {
        way.map_or("base", |i| &self.names[i])
    }

    pub fn head(&self) -> String {
        self.line("way", "prompt", "sha256 of logits", "seconds", "")
    }

    pub fn row(&self, row: &Row) -> String {
        let result = match (&row.difference, row.way) {
            (Some(difference), _) => difference.to_string(),
            (None, Some(_)) => "equal".to_owned(),
            (None, None) => "-".to_owned(),
        };
        self.line(
            self.name(row.way),
            &self.lengths[row.prompt].to_string(),
            &row.hash[..SHOWN],
            &format!("{:.1}", row.seconds),
            &result,
        )
    }

    fn line(&self, way: &str, prompt: &str, hash: &str, seconds: &str, result: &str) -> String {
        let width = self.width;
        let line = format!("{way:width$}  {prompt:>7}  {hash:SHOWN$}  {seconds:>8}  {result}");
        line.trim_end().to_owned()
    }
}

/// A time in its own unit.
pub(super) fn readable(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => "1 s".to_owned(),
        s if s < 100.0 => format!("{s:.0} s"),
        s if s < 100.0 * 60.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// Everything, as JSON text.
pub(super) fn json(
    model: &Path,
    (activations, kv_type): (ActivationFormat, KvType),
    seed: u64,
    plan: &Plan,
    all: &Comparison,
) -> String {
    let prompts = plan
        .prompts
        .iter()
        .map(|prompt| object!({ "tokens": prompt.len(), "sha256": token_hash(prompt) }));
    let rows = all.rows.iter().map(|row| {
        object!({
            "way": row.way.map_or("base", |i| &plan.ways[i].name),
            "prompt_tokens": plan.prompts[row.prompt].len(),
            "sha256": row.hash,
            "equal": row.way.map(|_| row.difference.is_none()),
            "difference": row.difference,
            "seconds": row.seconds,
        })
    });
    let whole = object!({
        "format": "palindrome-verify",
        "version": 1,
        "model": model.display().to_string(),
        "activations": activations.name(),
        "kv_type": kv_type.name(),
        "seed": seed,
        "decode_steps": plan.steps,
        "prompts": prompts.collect::<Vec<Value>>(),
        "base": plan.base,
        "ways": plan.ways,
        "rows": rows.collect::<Vec<Value>>(),
        "differences": all.differences(),
    });
    format!("{whole:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::{Arrangement, At, Difference, Prefix, Way, parse_ways};

    fn plan() -> Plan {
        let base = Way {
            threads: 2,
            isa: "scalar".to_owned(),
            block: 128,
            prefix: Prefix::Cold,
            company: 1,
            layout: Arrangement::Plain,
        };
        Plan {
            ways: parse_ways(&["block=17"], &base, &[Arrangement::Plain]).unwrap(),
            base,
            prompts: vec![vec![1, 2, 3]],
            steps: 2,
            estimate: true,
        }
    }

    fn rows() -> Comparison {
        let row = |way, difference| Row {
            way,
            prompt: 0,
            hash: "0123456789abcdef0123".to_owned(),
            difference,
            seconds: 0.25,
        };
        let difference = Difference {
            at: At::DecodeStep(2),
            differing: Some(7),
            vocab: 512,
        };
        Comparison {
            rows: vec![
                row(None, None),
                row(Some(0), None),
                row(Some(0), Some(difference)),
            ],
        }
    }

    #[test]
    fn people_see_a_line_a_walk() {
        let table = Table::new(&plan());
        let lines: Vec<String> = rows().rows.iter().map(|row| table.row(row)).collect();
        insta::assert_snapshot!(format!("{}\n{}", table.head(), lines.join("\n")), @r"
        way        prompt  sha256 of logits   seconds
        base            3  0123456789abcdef       0.2  -
        block=17        3  0123456789abcdef       0.2  equal
        block=17        3  0123456789abcdef       0.2  differs from decode step 2 on: 7 of 512 logits there
        ");
        assert_eq!(readable(99.4), "99 s");
        assert_eq!(readable(130.0), "2 min");
        assert_eq!(readable(7200.0), "2.0 h");
    }

    #[test]
    fn programs_get_all_of_it() {
        let text = json(
            Path::new("m.gguf"),
            (ActivationFormat::Int8, KvType::F16),
            1,
            &plan(),
            &rows(),
        );
        let all: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(all["differences"], 1);
        assert_eq!(all["kv_type"], "f16");
        assert_eq!(all["base"]["block"], 128);
        assert_eq!(all["ways"][0]["name"], "block=17");
        assert_eq!(all["ways"][0]["block"], 17);
        assert_eq!(all["rows"][0]["equal"], Value::Null);
        assert_eq!(all["rows"][1]["equal"], true);
        assert_eq!(all["rows"][2]["difference"]["decode_step"], 2);
        assert_eq!(all["prompts"][0]["sha256"], token_hash(&[1, 2, 3]));
    }
}
