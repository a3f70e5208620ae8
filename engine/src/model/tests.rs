//! Files that cannot be served are refused with what is wrong, where, and what would be right.

use std::collections::BTreeMap;

use super::{ForwardError, LoadOptions, LoadedModel, ModelError, Segment, Want};
use crate::formats::blocks::GgmlType;
use crate::formats::gguf::{GgufFile, GgufWriter, Value};
use crate::kv::{KvCache, KvType};

const HIDDEN: u64 = 32;
const WIDTH: u64 = 64;
const EXPERTS: u64 = 4;
const VOCAB: u64 = 48;

/// A tiny gpt-oss file that tests change before they open it.
struct Draft {
    meta: BTreeMap<String, Value>,
    tensors: BTreeMap<String, (Vec<u64>, f32)>,
    /// A token whose embedding is 1e30, which no pass can use.
    hot_token: Option<usize>,
}

impl Draft {
    /// One layer; every weight is `0.01` but those of the norms, which are 1.
    fn gpt_oss() -> Self {
        let mut draft = Self {
            meta: BTreeMap::new(),
            tensors: BTreeMap::new(),
            hot_token: None,
        };
        draft.set("general.architecture", Value::String("gpt-oss".into()));
        for (key, value) in [
            ("block_count", 1),
            ("context_length", 64),
            ("embedding_length", HIDDEN as u32),
            ("attention.head_count", 4),
            ("attention.head_count_kv", 2),
            ("attention.key_length", 8),
            ("attention.value_length", 8),
            ("attention.sliding_window", 4),
            ("expert_count", EXPERTS as u32),
            ("expert_used_count", 2),
            ("expert_feed_forward_length", WIDTH as u32),
        ] {
            draft.set(&format!("gpt-oss.{key}"), Value::U32(value));
        }
        let eps = "gpt-oss.attention.layer_norm_rms_epsilon";
        draft.set(eps, Value::F32(1e-5));
        for (name, dims, value) in [
            ("token_embd.weight", vec![HIDDEN, VOCAB], 0.01),
            ("output_norm.weight", vec![HIDDEN], 1.0),
            ("blk.0.attn_norm.weight", vec![HIDDEN], 1.0),
            ("blk.0.attn_q.weight", vec![HIDDEN, 32], 0.01),
            ("blk.0.attn_k.weight", vec![HIDDEN, 16], 0.01),
            ("blk.0.attn_v.weight", vec![HIDDEN, 16], 0.01),
            ("blk.0.attn_output.weight", vec![32, HIDDEN], 0.01),
            ("blk.0.attn_sinks.weight", vec![4], 0.01),
            ("blk.0.post_attention_norm.weight", vec![HIDDEN], 1.0),
            ("blk.0.ffn_gate_inp.weight", vec![HIDDEN, EXPERTS], 0.01),
            (
                "blk.0.ffn_gate_exps.weight",
                vec![HIDDEN, WIDTH, EXPERTS],
                0.01,
            ),
            (
                "blk.0.ffn_up_exps.weight",
                vec![HIDDEN, WIDTH, EXPERTS],
                0.01,
            ),
            (
                "blk.0.ffn_down_exps.weight",
                vec![WIDTH, HIDDEN, EXPERTS],
                0.01,
            ),
        ] {
            draft.tensors.insert(name.to_owned(), (dims, value));
        }
        draft
    }

    fn set(&mut self, key: &str, value: Value) {
        self.meta.insert(key.to_owned(), value);
    }

    fn open(&self) -> GgufFile {
        let mut writer = GgufWriter::default();
        for (key, value) in &self.meta {
            writer.set(key, value.clone());
        }
        for (name, (dims, _)) in &self.tensors {
            writer.tensor(name, GgmlType::F32, dims);
        }
        let mut bytes = writer.header();
        for (name, (dims, value)) in &self.tensors {
            let count = dims.iter().product::<u64>() as usize;
            let mut values = vec![*value; count];
            if name == "token_embd.weight" {
                // Rows that differ, so that tokens do.
                let hidden = HIDDEN as usize;
                for (token, row) in values.chunks_exact_mut(hidden).enumerate() {
                    row[token % hidden] += 0.5;
                    row[token / hidden] -= 0.25;
                }
                if let Some(token) = self.hot_token {
                    values[token * hidden..][..hidden].fill(1e30);
                }
            }
            bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
            let padding = writer.padding(4 * count as u64);
            bytes.extend(std::iter::repeat_n(0, padding));
        }
        GgufFile::parse(bytes).unwrap()
    }

    fn load(&self) -> Result<LoadedModel, ModelError> {
        LoadedModel::from_file(self.open(), "tiny", &LoadOptions::default())
    }

    /// The message of the refusal.
    fn refusal(&self) -> String {
        self.load().err().expect("the file is at fault").to_string()
    }
}

fn changed(key: &str, value: Value) -> Draft {
    let mut draft = Draft::gpt_oss();
    draft.set(key, value);
    draft
}

#[test]
fn a_sound_file_runs() {
    let model = Draft::gpt_oss().load().unwrap();
    assert_eq!(
        (model.name(), model.n_ctx(), model.vocab()),
        ("tiny", 64, 48)
    );
    let logits = model.logits(&[1, 2, 3]).unwrap();
    assert_eq!((logits.len(), logits[0].len()), (3, 48));
    let mut cache = model.new_cache();
    let bad = model.forward(&mut cache, &[48], Want::Last);
    assert_eq!(bad, Err(ForwardError::BadToken { id: 48, vocab: 48 }));
    let long = model.forward(&mut cache, &[0; 65], Want::Last);
    assert_eq!(
        long,
        Err(ForwardError::ContextFull {
            needed: 65,
            ctx: 64
        })
    );
    assert!(cache.is_empty());
}

#[test]
fn wrong_metadata_is_named() {
    let key = |k: &str| format!("gpt-oss.{k}");
    for (name, value, parts) in [
        ("expert_used_count", 5, ["is 5", "at most expert_count = 4"]),
        (
            "attention.head_count_kv",
            3,
            ["is 3", "a divisor of attention.head_count = 4"],
        ),
        ("context_length", 0, ["is 0", "1 to 16777216"]),
        ("block_count", 4_000_000_000, ["is 4000000000", "1 to 1024"]),
        ("attention.key_length", 7, ["is 8", "the key length, 7"]),
        ("attention.sliding_window", 0, ["is 0", "1 to"]),
    ] {
        let message = changed(&key(name), Value::U32(value)).refusal();
        for part in parts {
            assert!(message.contains(part), "{name}: {message}");
        }
    }
    let eps = key("attention.layer_norm_rms_epsilon");
    let message = changed(&eps, Value::F32(f32::NAN)).refusal();
    assert!(
        message.contains(&eps) && message.contains("between 0 and 1"),
        "{message}"
    );
    let mut draft = Draft::gpt_oss();
    draft.meta.remove("gpt-oss.expert_count");
    let message = draft.refusal();
    assert!(message.contains("gpt-oss.expert_count"), "{message}");
    let message = changed("general.architecture", Value::String("clip".into())).refusal();
    assert!(
        message.contains("`clip`") && message.contains("gpt-oss, llama, qwen3moe"),
        "{message}"
    );
    let message = changed(
        "gpt-oss.rope.scaling.type",
        Value::String("longrope".into()),
    )
    .refusal();
    assert!(
        message.contains("`longrope`") && message.contains("yarn"),
        "{message}"
    );
}

#[test]
fn a_qwen3_moe_file_needs_the_norms_of_its_heads() {
    let mut draft = Draft::gpt_oss();
    let keys: Vec<String> = draft.meta.keys().cloned().collect();
    for key in keys {
        if let Some(rest) = key.strip_prefix("gpt-oss.") {
            let value = draft.meta[&key].clone();
            draft.set(&format!("qwen3moe.{rest}"), value);
        }
    }
    draft.set("general.architecture", Value::String("qwen3moe".into()));
    assert_eq!(
        draft.refusal(),
        "tensor `blk.0.attn_q_norm.weight` is missing; expected one of shape [8, 1]"
    );
    for name in ["attn_q_norm", "attn_k_norm"] {
        let norm = (vec![8], 1.0);
        draft.tensors.insert(format!("blk.0.{name}.weight"), norm);
    }
    let (norm, name) = ((vec![HIDDEN], 1.0), "blk.0.ffn_norm.weight");
    draft.tensors.insert(name.to_owned(), norm);
    let model = draft.load().unwrap();
    assert_eq!(model.architecture(), "qwen3moe");
    assert_eq!(model.logits(&[1, 2]).unwrap()[1].len(), VOCAB as usize);
}

#[test]
fn wrong_tensors_are_named() {
    let mut draft = Draft::gpt_oss();
    draft.tensors.get_mut("blk.0.attn_q.weight").unwrap().0 = vec![HIDDEN, 40];
    let message = draft.refusal();
    assert_eq!(
        message,
        "tensor `blk.0.attn_q.weight` has shape [32, 40], expected [32, 32]"
    );
    let mut draft = Draft::gpt_oss();
    draft.tensors.remove("blk.0.ffn_up_exps.weight");
    let message = draft.refusal();
    assert!(
        message.contains("`blk.0.ffn_up_exps.weight` is missing"),
        "{message}"
    );
    assert!(message.contains("[32, 64, 4]"), "{message}");
    let mut draft = Draft::gpt_oss();
    draft.tensors.get_mut("blk.0.attn_k.weight").unwrap().1 = f32::NAN;
    let message = draft.refusal();
    assert_eq!(message, "tensor `blk.0.attn_k.weight`, row 0, block 0: NaN");
}

#[test]
fn a_context_over_the_limit_is_refused() {
    for ctx in [0, 65] {
        let options = LoadOptions {
            ctx: Some(ctx),
            ..LoadOptions::default()
        };
        let result = LoadedModel::from_file(Draft::gpt_oss().open(), "tiny", &options);
        let message = result.err().unwrap().to_string();
        assert!(message.contains(&format!("{ctx} tokens")) && message.contains("1 to 64"));
    }
}

#[test]
fn numbers_out_of_range_are_an_error_that_says_where() {
    let mut draft = Draft::gpt_oss();
    draft
        .tensors
        .get_mut("blk.0.post_attention_norm.weight")
        .unwrap()
        .1 = 1e30;
    let model = draft.load().unwrap();
    let mut cache = model.new_cache();
    let error = model.forward(&mut cache, &[1, 2], Want::Last).unwrap_err();
    assert!(
        error.to_string().contains("position 0, in layer 0"),
        "{error}"
    );
    assert!(cache.is_empty());
}

#[test]
fn a_value_beyond_f16_is_an_error_and_f32_holds_it() {
    let mut draft = Draft::gpt_oss();
    let bias = (vec![16], 1e5);
    draft.tensors.insert("blk.0.attn_v.bias".to_owned(), bias);
    let model = |kv_type| {
        let options = LoadOptions {
            kv_type,
            ..LoadOptions::default()
        };
        LoadedModel::from_file(draft.open(), "tiny", &options).unwrap()
    };
    let (narrow, wide) = (model(KvType::F16), model(KvType::F32));
    let mut cache = narrow.new_cache();
    let error = narrow.forward(&mut cache, &[1, 2], Want::Last).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a key or value is beyond f16's range (65504) at position 0, in layer 0; \
         `--kv-type f32` can hold it"
    );
    assert!(cache.is_empty());
    assert!(wide.logits(&[1, 2]).is_ok());
}

#[test]
fn a_failing_segment_fails_alone() {
    let mut draft = Draft::gpt_oss();
    draft.hot_token = Some(7);
    let output = (vec![HIDDEN, VOCAB], 0.01);
    draft.tensors.insert("output.weight".to_owned(), output);
    let model = draft.load().unwrap();
    let prompts: [&[u32]; 5] = [&[1, 2, 3], &[4, 5, 7, 6], &[9], &[7], &[8, 48]];
    let mut caches: Vec<KvCache> = prompts.iter().map(|_| model.new_cache()).collect();
    model
        .forward(&mut caches[1], &[11, 12], Want::Nothing)
        .unwrap();
    let mut segments: Vec<Segment<'_>> = prompts
        .iter()
        .zip(&mut caches)
        .map(|(&tokens, cache)| Segment {
            cache,
            tokens,
            want: Want::All,
        })
        .collect();
    let results = model.forward_batch(&mut segments);
    for i in [0, 2] {
        let alone = model.forward(&mut model.new_cache(), prompts[i], Want::All);
        assert_eq!(results[i], alone, "segment {i}");
        assert_eq!(alone.unwrap().len(), prompts[i].len() * VOCAB as usize);
    }
    let failed = |i: usize| results[i].clone().unwrap_err();
    assert!(
        failed(1).to_string().contains("position 4"),
        "{}",
        failed(1)
    );
    assert!(
        failed(3).to_string().contains("position 0"),
        "{}",
        failed(3)
    );
    assert_eq!(failed(4), ForwardError::BadToken { id: 48, vocab: 48 });
    let lengths: Vec<usize> = caches.iter().map(KvCache::len).collect();
    assert_eq!(lengths, [3, 2, 1, 0, 0]);
}
