//! Each pre-tokenizer against Hugging Face `tokenizers` (`golden/tokenizers/make_golden.py`).

use palindrome_engine::tokenizer::{Specials, Tokenizer, Vocabulary};

#[derive(serde::Deserialize)]
struct Golden {
    pre: String,
    tokens: Vec<String>,
    specials: Vec<String>,
    merges: Vec<String>,
    cases: Vec<(String, Vec<u32>)>,
}

fn compare(name: &str) {
    let path = format!(
        "{}/tests/golden/tokenizers/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(path).expect("the golden file is in the repository");
    let golden: Golden = serde_json::from_str(&text).expect("the golden file is valid");
    let types = golden
        .tokens
        .iter()
        .map(|t| if golden.specials.contains(t) { 3 } else { 1 });
    let tokenizer = Tokenizer::new(&Vocabulary {
        pre: golden.pre,
        token_types: Some(types.collect()),
        tokens: golden.tokens,
        merges: golden.merges,
        ..Vocabulary::default()
    })
    .expect("the vocabulary is valid");
    // A vocabulary may lack bytes (smollm's does); strings with such bytes cannot come back.
    let known = tokenizer.decode(&(0..tokenizer.vocab_size() as u32).collect::<Vec<_>>());
    let (mut mismatches, mut round_trips, mut broken) = (0, 0, 0);
    for (text, ids) in &golden.cases {
        let ours = tokenizer.encode(text, Specials::Parse);
        if ours != *ids {
            mismatches += 1;
            println!("{name}: {text:?}\n  ours   {ours:?}\n  theirs {ids:?}");
        }
        if text.bytes().all(|byte| known.contains(&byte)) {
            round_trips += 1;
            broken += usize::from(tokenizer.decode(&ours) != text.as_bytes());
        }
    }
    let cases = golden.cases.len();
    println!("{name}: {cases} strings, {mismatches} mismatches, {round_trips} round trips");
    assert_eq!((mismatches, broken), (0, 0));
    assert!(cases >= 500 && round_trips >= 300);
}

#[test]
fn gpt_2() {
    compare("gpt-2");
}

#[test]
fn smollm() {
    compare("smollm");
}

#[test]
fn llama_bpe() {
    compare("llama-bpe");
}

#[test]
fn qwen2() {
    compare("qwen2");
}

#[test]
fn gpt_4o() {
    compare("gpt-4o");
}
