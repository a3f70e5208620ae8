//! Whole files: what is asked for is what the reader finds.

use super::*;
use crate::formats::blocks::GgmlType;
use crate::formats::gguf::GgufFile;

fn made(shape: &Shape, vocab: VocabKind, skew: f32, seed: u64, threads: usize) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("m.gguf");
    let plan = plan(shape, vocab, skew).expect("a sound shape");
    let report = write(&path, &plan, seed, threads, false).expect("room on the disk");
    let bytes = std::fs::read(&path).expect("the file is there");
    assert_eq!(report.bytes, bytes.len() as u64);
    let names: Vec<_> = std::fs::read_dir(folder.path())
        .expect("readable")
        .collect();
    assert_eq!(names.len(), 1, "the temporary name is gone");
    bytes
}

#[test]
fn bytes_depend_on_the_seed_alone() {
    let make = |seed, threads| made(&Shape::TINY, VocabKind::Bytes(300), 1.0, seed, threads);
    let first = make(1, 1);
    assert!(first == make(1, 3), "threads change nothing");
    assert!(first != make(2, 1), "the seed changes the weights");
}

#[test]
fn a_file_reads_back_with_its_sizes_and_sound_values() {
    let file = GgufFile::parse(made(&Shape::TINY, VocabKind::Bytes(300), 1.0, 7, 2))
        .expect("the reader takes it");
    file.check_values().expect("no NaN");
    let m = file.metadata();
    assert_eq!(m.str("general.architecture").expect("set"), "gpt-oss");
    assert_eq!(m.u32("gpt-oss.expert_count").expect("set"), 8);
    assert_eq!(
        m.opt_strings("tokenizer.ggml.tokens")
            .expect("typed")
            .map(|t| t.len()),
        Some(300)
    );
    let experts = file.tensor("blk.3.ffn_down_exps.weight").expect("present");
    assert_eq!(
        (experts.ty, &experts.dims[..]),
        (GgmlType::Mxfp4, &[128u64, 128, 8][..])
    );
    assert_eq!(file.tensors().len(), 4 * 19 + 3);
}

/// Standard deviation of a tensor's values.
fn std_of(file: &GgufFile, name: &str) -> f64 {
    let t = file.tensor(name).expect("present");
    let mut row = vec![0f32; t.cols()];
    let mut squares = 0f64;
    for bytes in file.bytes(t).chunks_exact(t.len / t.rows()) {
        t.ty.dequantize_row(bytes, &mut row);
        squares += row
            .iter()
            .map(|x| f64::from(*x) * f64::from(*x))
            .sum::<f64>();
    }
    (squares / (t.rows() * t.cols()) as f64).sqrt()
}

#[test]
fn spreads_are_those_planned() {
    let file = GgufFile::parse(made(&Shape::TINY, VocabKind::Bytes(300), 0.0, 7, 2))
        .expect("the reader takes it");
    let wide = 1.0 / 128f64.sqrt();
    for (name, planned) in [
        ("token_embd.weight", 1.0),
        ("output.weight", 2.0 * wide),
        ("blk.0.attn_q.weight", 1.5 * wide),
        ("blk.0.attn_output.weight", wide),
        ("blk.1.ffn_up_exps.weight", wide),
        ("blk.1.ffn_gate_inp.weight", wide),
        ("blk.1.attn_v.bias", 0.1),
    ] {
        let ratio = std_of(&file, name) / planned;
        assert!(
            (0.8..1.2).contains(&ratio),
            "{name}: {ratio} of what was planned"
        );
    }
}

#[test]
fn qwen3_moe_in_k_quants() {
    let shape = Shape::TINY_QWEN3_MOE;
    let bytes = made(&shape, VocabKind::Bytes(300), 0.0, 7, 2);
    assert!(bytes == made(&shape, VocabKind::Bytes(300), 0.0, 7, 1));
    let file = GgufFile::parse(bytes).expect("the reader takes it");
    file.check_values().expect("no NaN");
    let m = file.metadata();
    assert_eq!(m.str("general.architecture").expect("set"), "qwen3moe");
    assert_eq!(
        m.u32("qwen3moe.expert_feed_forward_length").expect("set"),
        256
    );
    assert_eq!(file.tensors().len(), 4 * 12 + 3);
    let wide = 1.0 / 256f64.sqrt();
    for (name, ty, planned) in [
        ("token_embd.weight", GgmlType::Q4K, 1.0),
        ("output.weight", GgmlType::Q6K, 2.0 * wide),
        ("blk.1.attn_v.weight", GgmlType::Q4K, wide),
        ("blk.2.attn_v.weight", GgmlType::Q6K, wide),
        ("blk.2.attn_output.weight", GgmlType::Q4K, wide),
        ("blk.2.ffn_up_exps.weight", GgmlType::Q4K, wide),
        ("blk.1.ffn_down_exps.weight", GgmlType::Q4K, wide),
        ("blk.2.ffn_down_exps.weight", GgmlType::Q6K, wide),
        ("blk.1.ffn_gate_inp.weight", GgmlType::F32, wide),
    ] {
        assert_eq!(file.tensor(name).expect("present").ty, ty, "{name}");
        let ratio = std_of(&file, name) / planned;
        assert!(
            (0.95..1.05).contains(&ratio),
            "{name}: {ratio} of what was planned"
        );
    }
}

#[test]
fn skew_lowers_most_biases() {
    let file = GgufFile::parse(made(&Shape::TINY, VocabKind::Bytes(300), 2.0, 7, 2))
        .expect("the reader takes it");
    let t = file.tensor("blk.0.ffn_gate_inp.bias").expect("present");
    let mut b = vec![0f32; 8];
    t.ty.dequantize_row(file.bytes(t), &mut b);
    b.sort_by(|x, y| y.total_cmp(x));
    // 2 * (1/2 + ... + 1/8) = 3.44 lies between the first and the last rank.
    assert!((b[0] - b[7] - 3.44).abs() < 0.8, "{b:?}");
}

#[test]
fn refusals() {
    let text = |shape: Shape, vocab| match plan(&shape, vocab, 0.0) {
        Err(e) => e.to_string(),
        Ok(_) => panic!("the shape is unsound"),
    };
    let bytes = VocabKind::Bytes(300);
    let tiny = Shape::TINY;
    assert_eq!(
        text(
            Shape {
                hidden: 100,
                ..tiny
            },
            bytes
        ),
        "--hidden is 100; expected a multiple of 32, the block length"
    );
    assert_eq!(
        text(
            Shape {
                experts_used: 9,
                ..tiny
            },
            bytes
        ),
        "--experts-used is 9; expected at most --experts, 8"
    );
    assert_eq!(
        text(Shape { layers: 0, ..tiny }, bytes),
        "--layers is 0; expected at least 1"
    );
    let qwen = Shape::TINY_QWEN3_MOE;
    assert_eq!(
        text(Shape { hidden: 96, ..qwen }, bytes),
        "--hidden is 96; expected a multiple of 256, the block length"
    );
    let windowed = Shape {
        window: Some(9),
        ..qwen
    };
    assert_eq!(
        text(windowed, bytes),
        "--window is 9; expected a window in gpt-oss and none in other models"
    );
    assert!(text(qwen, VocabKind::O200k).contains("bytes vocabulary"));
    assert!(text(tiny, VocabKind::Bytes(9)).starts_with("--vocab is 9; expected 266 to"));

    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("m.gguf");
    std::fs::write(&path, "mine").expect("writable");
    let small = plan(&tiny, bytes, 0.0).expect("sound");
    let error = write(&path, &small, 1, 1, false).expect_err("a file is there");
    assert!(matches!(error, SynthError::Exists { .. }));
    assert_eq!(std::fs::read(&path).expect("untouched"), b"mine");
    write(&path, &small, 1, 1, true).expect("forced");

    let huge = Shape {
        layers: 1024,
        experts: 1024,
        ..Shape::GPT_OSS_120B
    };
    let huge = plan(&huge, bytes, 0.0).expect("sound, if large");
    let error = write(&folder.path().join("h.gguf"), &huge, 1, 1, false).expect_err("no disk");
    assert!(matches!(error, SynthError::NoSpace { needed, free, .. } if needed > free));
}
