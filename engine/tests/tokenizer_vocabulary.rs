//! Vocabularies that are wrong, and details of those that are right.

use palindrome_engine::tokenizer::{Specials, Tokenizer, TokenizerError, Vocabulary};

/// Newline and printable ASCII as single-byte tokens (ids 0 to 95), nothing else.
fn ascii() -> Vocabulary {
    let mut tokens = vec!["Ċ".to_owned(), "Ġ".to_owned()];
    tokens.extend(('!'..='~').map(String::from));
    Vocabulary {
        pre: "gpt-2".to_owned(),
        token_types: Some(vec![1; tokens.len()]),
        tokens,
        ..Vocabulary::default()
    }
}

fn with_token(mut vocabulary: Vocabulary, text: &str, ty: i64) -> Vocabulary {
    vocabulary.tokens.push(text.to_owned());
    vocabulary
        .token_types
        .as_mut()
        .expect("ascii() has types")
        .push(ty);
    vocabulary
}

fn refusal(vocabulary: &Vocabulary) -> String {
    Tokenizer::new(vocabulary)
        .expect_err("it should be refused")
        .to_string()
}

#[test]
fn wrong_vocabularies_are_refused_with_a_reason() {
    let base = ascii();
    assert!(Tokenizer::new(&base).is_ok());
    let edit = |change: &dyn Fn(&mut Vocabulary)| {
        let mut vocabulary = base.clone();
        change(&mut vocabulary);
        refusal(&vocabulary)
    };
    let messages = [
        edit(&|v| v.tokens.clear()),
        edit(&|v| v.pre = "unheard-of".to_owned()),
        edit(&|v| v.token_types = Some(vec![1; 3])),
        edit(&|v| v.token_types.as_mut().unwrap()[2] = 7),
        edit(&|v| v.tokens[5] = String::new()),
        edit(&|v| v.tokens[5] = "a".to_owned()),
        edit(&|v| v.tokens[5] = "ab".to_owned()),
        edit(&|v| v.merges = vec!["a".to_owned()]),
        edit(&|v| v.merges = vec!["a b c".to_owned()]),
        edit(&|v| v.merges = vec!["a é".to_owned()]),
        edit(&|v| v.merges = vec!["a b".to_owned()]),
        edit(&|v| v.eos = Some(96)),
        edit(&|v| v.bos = Some(u32::MAX)),
    ];
    insta::assert_snapshot!(messages.join("\n"), @r"
    the vocabulary has 0 tokens; expected 1 to 2147483647
    pre-tokenizer `unheard-of` is not supported; supported are gpt-4o, llama-bpe, qwen2, gpt-2, smollm
    the vocabulary has 96 tokens and 3 token types; expected one type a token
    token 2 has type 7; expected 1 to 6
    token 5 has no text
    tokens 5 and 66 are both `a`; expected each text once
    no token stands for byte 0x24; expected at least newline and printable ASCII as single-byte tokens
    merge 0 is `a`; expected two tokens with one space between them
    merge 0 is `a b c`; expected two tokens with one space between them
    merge 0 is `a é`; expected `é` to be a normal token
    merge 0 is `a b`; expected `ab` to be a normal token
    `tokenizer.ggml.eos_token_id` is 96; expected an id below 96
    `tokenizer.ggml.bos_token_id` is 4294967295; expected an id below 96
    ");
}

#[test]
fn a_duplicate_merge_keeps_its_first_rank() {
    let mut vocabulary = with_token(with_token(ascii(), "ab", 1), "bc", 1);
    vocabulary.merges = ["a b", "b c", "a b"].map(str::to_owned).to_vec();
    let tokenizer = Tokenizer::new(&vocabulary).unwrap();
    assert_eq!(
        tokenizer.decode(&tokenizer.encode("abc", Specials::AsText)[..1]),
        b"ab"
    );
}

#[test]
fn user_defined_tokens_are_found_in_any_text_and_control_tokens_only_in_templates() {
    let vocabulary = with_token(with_token(ascii(), "<tool_call>", 4), "<|im_end|>", 3);
    let vocabulary = with_token(with_token(vocabulary, "<|im", 3), "<unused>", 5);
    let tokenizer = Tokenizer::new(&vocabulary).unwrap();
    let text = "<tool_call><|im_end|><|im<unused>";
    let parsed = tokenizer.encode(text, Specials::Parse);
    // The longest special token wins; unused tokens are text.
    assert_eq!(parsed[..3], [96, 97, 98]);
    assert_eq!(parsed.len(), 3 + "<unused>".len());
    let plain = tokenizer.encode(text, Specials::AsText);
    assert_eq!(plain.len(), 1 + text.len() - "<tool_call>".len());
    assert_eq!(tokenizer.decode(&plain), text.as_bytes());
    assert!(!tokenizer.is_special(96) && tokenizer.is_special(97));
    assert_eq!(tokenizer.end_of_generation(), [97]);
}

#[test]
fn a_turn_ends_where_its_format_ends_it() {
    let plain = with_token(ascii(), "<|end|>", 3);
    assert_eq!(Tokenizer::new(&plain).unwrap().end_of_generation(), [96]);
    let mut harmony = with_token(with_token(plain, "<|return|>", 3), "<|call|>", 3);
    harmony.eot = Some(96);
    harmony.eos = Some(97);
    assert_eq!(
        Tokenizer::new(&harmony).unwrap().end_of_generation(),
        [97, 98]
    );
    // The same text as an ordinary token ends nothing.
    let text = with_token(ascii(), "</s>", 1);
    assert!(
        Tokenizer::new(&text)
            .unwrap()
            .end_of_generation()
            .is_empty()
    );
}

#[test]
fn bos_is_added_where_the_file_or_the_family_says_so() {
    let mut vocabulary = with_token(ascii(), "<s>", 3);
    vocabulary.bos = Some(96);
    let bos = |v: &Vocabulary| Tokenizer::new(v).unwrap().bos_to_add();
    assert_eq!(bos(&vocabulary), None);
    vocabulary.add_bos = Some(true);
    assert_eq!(bos(&vocabulary), Some(96));
    vocabulary.add_bos = None;
    vocabulary.pre = "llama-bpe".to_owned();
    assert_eq!(bos(&vocabulary), Some(96));
    vocabulary.add_bos = Some(false);
    assert_eq!(bos(&vocabulary), None);
}

#[test]
fn an_unknown_pre_tokenizer_can_be_matched_on() {
    let vocabulary = Vocabulary {
        pre: "tekken".to_owned(),
        ..ascii()
    };
    assert!(matches!(
        Tokenizer::new(&vocabulary),
        Err(TokenizerError::UnknownPre { name, .. }) if name == "tekken"
    ));
}
