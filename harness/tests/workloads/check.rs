//! `palindrome workload check`.

use std::fs;
use std::process::{Command, Stdio};

use palindrome_harness::server::free_port;
use serde_json::{Value, json};

use crate::support::{Ran, palindrome};

/// A body that leaves nothing to servers.
fn whole() -> Value {
    json!({
        "model": "m", "messages": [{"role": "user", "content": "twelve bytes"}], "stream": true,
        "stream_options": {"include_usage": true}, "max_tokens": 10, "temperature": 0.7, "top_k": 0, "top_p": 1,
        "min_p": 0, "seed": 1, "repeat_penalty": 1, "presence_penalty": 0, "frequency_penalty": 0, "cache_prompt": true,
    })
}

fn check(bodies: &[&Value], more: &[&str]) -> Ran {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..bodies.len()).map(|n| format!("{n}.json")).collect();
    for (name, body) in names.iter().zip(bodies) {
        fs::write(dir.path().join(name), body.to_string()).unwrap();
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    palindrome(
        dir.path(),
        &[&["workload", "check"], &names[..], more].concat(),
    )
}

/// Findings about a body that differs from the whole one.
fn findings(change: impl Fn(&mut Value)) -> (Option<i32>, Vec<String>) {
    let mut body = whole();
    change(&mut body);
    let ran = check(&[&body], &["--json"]);
    let said: Value =
        serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{e}: {} {}", ran.out, ran.err));
    let line = |f: &Value| {
        format!(
            "{} {}",
            f["weight"].as_str().unwrap(),
            f["what"].as_str().unwrap()
        )
    };
    let all = said["findings"].as_array().unwrap().iter().map(line);
    (
        ran.code,
        all.filter(|f| !f.contains("note read by")).collect(),
    )
}

fn without(name: &'static str) -> impl Fn(&mut Value) {
    move |body| drop(body.as_object_mut().unwrap().shift_remove(name))
}

#[test]
fn a_body_that_spells_everything_out_is_fair() {
    assert_eq!(findings(|_| {}), (Some(0), vec![]));
    let ran = check(&[&whole()], &[]);
    assert!(ran.out.contains("3 A"), "{}", ran.out);
    assert!(
        ran.out.contains("A: ASSUMED, 4 bytes of text a token"),
        "{}",
        ran.out
    );
    assert!(
        ran.out
            .contains("read by llama-server, palindrome-engine only: `cache_prompt`, `repeat_penalty` (0.json)"),
        "{}",
        ran.out
    );
    assert!(
        ran.out.ends_with("fair: every server is asked the same\n"),
        "{}",
        ran.out
    );
}

#[test]
fn whatever_is_left_to_the_servers_fails_the_check() {
    for name in [
        "temperature",
        "top_k",
        "top_p",
        "min_p",
        "seed",
        "repeat_penalty",
        "presence_penalty",
        "frequency_penalty",
        "cache_prompt",
        "stream",
    ] {
        let (code, found) = findings(without(name));
        assert_eq!(code, Some(2), "{name}");
        assert!(
            found[0].starts_with(&format!("unfair `{name}` is missing: ")),
            "{found:?}"
        );
    }
    for (change, says) in [
        (json!({"max_tokens": null}), "no limit of the answer"),
        (
            json!({"stream_options": null}),
            "without `stream_options.include_usage`",
        ),
        (
            json!({"xtc_probability": 0.5}),
            "`xtc_probability` is on, and only some servers have it: 0 switches it off",
        ),
        (json!({"seed": -1}), "a `seed` below 0"),
        (json!({"n": 2}), "`n` asks for several answers"),
        (
            json!({"prompt": "x"}),
            "neither `messages` nor `prompt`, or both",
        ),
    ] {
        let (code, found) = findings(|body| {
            for (name, value) in change.as_object().unwrap() {
                body[name] = value.clone();
            }
        });
        assert_eq!(code, Some(2), "{says}");
        assert!(
            found[0].starts_with("unfair") && found[0].contains(says),
            "{found:?}"
        );
    }
    // At temperature 0 there is no chance, so nothing of it is missed.
    let (code, found) = findings(|body| {
        body["temperature"] = json!(0);
        without("seed")(body);
    });
    assert_eq!(code, Some(0));
    assert_eq!(
        found,
        ["note `seed` is missing (changes no answer at temperature 0)"]
    );
    let (code, found) = findings(|body| body["temprature"] = json!(1));
    assert_eq!(code, Some(0));
    assert!(
        found[0].starts_with("note not known here") && found[0].ends_with(": `temprature`"),
        "{found:?}"
    );
}

#[test]
fn what_is_no_body_and_what_is_there_twice_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let run = |text: &str| {
        fs::write(dir.path().join("b.json"), text).unwrap();
        palindrome(dir.path(), &["workload", "check", "."])
    };
    for (text, says) in [
        (
            "{\"seed\":1,\"seed\":2}",
            "not JSON that all servers read alike: the key `seed` is there twice",
        ),
        ("[]", "not a JSON object"),
        ("{", "not JSON"),
    ] {
        let ran = run(text);
        assert_eq!(ran.code, Some(2));
        assert!(ran.out.contains(says), "{}", ran.out);
    }
    fs::remove_file(dir.path().join("b.json")).unwrap();
    let none = palindrome(dir.path(), &["workload", "check", "."]);
    assert!(
        none.code == Some(2) && none.err.contains("no bodies; give a folder"),
        "{}",
        none.err
    );
    let twice = check(&[&whole(), &whole()], &[]);
    assert_eq!(twice.code, Some(0));
    assert!(
        twice.out.contains("the same bytes as 0.json"),
        "{}",
        twice.out
    );
}

#[test]
fn a_server_counts_tokens_and_a_study_says_whether_they_fit() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("mock.toml"), "dialect = \"llama-cpp\"\n").unwrap();
    fs::write(at("a.json"), whole().to_string()).unwrap();
    let study = |ctx: u32, path: &str| {
        fs::write(
            at("study.toml"),
            format!(
                "name = \"s\"\n[base]\nctx = {ctx}\n[[arm]]\nname = \"A\"\nkind = \"mock\"\nscript = \"none\"\n[[arm]]\nname = \"B\"\n\
                 kind = \"mock\"\nscript = \"none\"\nctx = 9999\n[workload]\npath = \"{path}\"\nbodies = [\"a.json\", \"a.json\"]\n"
            ),
        )
        .unwrap();
    };
    let port = free_port().unwrap();
    let mut server = Command::new(env!("CARGO_BIN_EXE_palindrome"))
        .args(["mock-server", "--port", &port.to_string(), "--script"])
        .arg(at("mock.toml"))
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        std::thread::yield_now();
    }
    // The mock's tokens are the bytes of the messages as JSON.
    let tokens = whole()["messages"].to_string().len() as u32;
    let url = format!("http://127.0.0.1:{port}");
    let run = || {
        palindrome(
            dir.path(),
            &["workload", "check", "study.toml", "--server", &url],
        )
    };
    study(tokens + 10, "/v1/chat/completions");
    let fits = run();
    assert_eq!(fits.code, Some(0), "{}", fits.out);
    assert!(fits.out.contains(&format!("{tokens} M")), "{}", fits.out);
    study(tokens + 9, "/v1/completions");
    let not = run();
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(not.code, Some(2));
    let says = format!(
        "{tokens} prompt tokens (counted) and 10 of the answer do not fit the context of {} of arm A",
        tokens + 9
    );
    assert!(not.out.contains(&says), "{}", not.out);
    assert!(
        not.out.contains("posts them to a route for prompts"),
        "{}",
        not.out
    );
    // Nobody there: what is assumed is said to be.
    let alone = palindrome(
        dir.path(),
        &[
            "workload",
            "check",
            "a.json",
            "--server",
            "http://127.0.0.1:1",
        ],
    );
    assert!(alone.out.contains("3 A"), "{}", alone.out);
    let far = palindrome(
        dir.path(),
        &["workload", "check", "a.json", "--server", "http://far:1"],
    );
    assert!(
        far.code == Some(2) && far.err.contains("is not this machine"),
        "{}",
        far.err
    );
}
