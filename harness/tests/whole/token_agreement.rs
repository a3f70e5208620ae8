//! Greedy tokens of the bundled engine against llama.cpp's, prompt by prompt.
//!
//! Both round differently on the way, so a near-tie may fall either way; nothing else may.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{engine, llama_cpp, model, root};

const TOKENS: usize = 64;
/// Prompts, of ten, whose tokens must all agree.
const MUST_AGREE: usize = 9;
/// Greatest gap, in natural-log probability, between the two candidates of a near-tie. Int8
/// activations move logits of this model by about a hundredth of their spread.
const NEAR_TIE: f64 = 0.25;

struct Server {
    child: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Server {
    fn start(mut command: Command) -> Self {
        let port = TcpListener::bind("127.0.0.1:0")
            .expect("a port")
            .local_addr()
            .expect("bound")
            .port();
        command.args(["--host", "127.0.0.1", "--port", &port.to_string()]);
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut server = Self {
            child: child.expect("the server starts"),
            port,
        };
        let started = Instant::now();
        while server
            .ask("GET", "/health", "")
            .is_none_or(|(status, _)| status != 200)
        {
            assert!(
                server.child.try_wait().expect("a child").is_none(),
                "the server died"
            );
            assert!(
                started.elapsed() < Duration::from_secs(300),
                "the server is not ready after 300 s"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
        server
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(body.as_bytes()).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some((
            status,
            if head.to_lowercase().contains("transfer-encoding: chunked") {
                dechunk(body)
            } else {
                body.to_owned()
            },
        ))
    }

    fn complete(&self, body: &Value) -> Value {
        let (status, text) = self
            .ask("POST", "/completion", &body.to_string())
            .expect("an answer");
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).expect("a JSON answer")
    }

    fn tokens(&self, body: &Value) -> Vec<u64> {
        let answer = self.complete(body);
        let ids = answer["tokens"].as_array().expect("token ids");
        ids.iter()
            .map(|id| id.as_u64().expect("a token id"))
            .collect()
    }

    /// Log-probabilities of the best tokens after `prompt` (token ids), best first.
    fn next_best(&self, body: &Value, prompt: &[u64]) -> Vec<(u64, f64)> {
        let mut body = body.clone();
        body["prompt"] = json!(prompt);
        body["n_predict"] = json!(1);
        body["n_probs"] = json!(10);
        let answer = self.complete(&body);
        let top = answer["completion_probabilities"][0]["top_logprobs"]
            .as_array()
            .expect("alternatives")
            .clone();
        top.iter()
            .map(|t| {
                (
                    t["id"].as_u64().expect("an id"),
                    t["logprob"].as_f64().expect("a number"),
                )
            })
            .collect()
    }

    fn tokenize(&self, text: &Value) -> Vec<u64> {
        let body = json!({ "content": text, "add_special": true, "parse_special": true });
        let (status, text) = self
            .ask("POST", "/tokenize", &body.to_string())
            .expect("an answer");
        assert_eq!(status, 200, "{text}");
        let answer: Value = serde_json::from_str(&text).expect("a JSON answer");
        answer["tokens"]
            .as_array()
            .expect("ids")
            .iter()
            .map(|id| id.as_u64().expect("an id"))
            .collect()
    }
}

fn dechunk(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let Ok(size) = usize::from_str_radix(size.trim(), 16) else {
            break;
        };
        let Some(chunk) = rest.get(..size) else { break };
        whole.push_str(chunk);
        body = rest.get(size + 2..).unwrap_or("");
    }
    whole
}

/// How far below the best `id` lies; `None` where it is not among the alternatives.
fn gap(best: &[(u64, f64)], id: u64) -> Option<f64> {
    let top = best.first()?.1;
    best.iter()
        .find(|(other, _)| *other == id)
        .map(|(_, logprob)| top - logprob)
}

#[test]
fn greedy_tokens_agree_with_llama_cpp_or_differ_at_a_near_tie() {
    let model = model();
    let llama = llama_cpp();
    let mut command = Command::new(&llama.program);
    command
        .args(&llama.args_prefix)
        .arg("-m")
        .arg(&model)
        .args(["-c", "2048", "-t", "2", "-np", "1", "--jinja"]);
    let theirs = Server::start(command);
    let mut command = Command::new(engine());
    command.arg("serve").arg(&model).args([
        "--ctx",
        "2048",
        "--threads",
        "2",
        "--rope-compat",
        "ggml",
    ]);
    let ours = Server::start(command);

    let mut agreeing = 0;
    println!("prompt  agree  position  ours    theirs  gap in ours  gap in theirs");
    for number in 0..10 {
        let path = root().join(format!("workloads/agreement/{number:02}.json"));
        let text = std::fs::read_to_string(&path).expect("a saved body");
        let mut body: Value = serde_json::from_str(&text).expect("a JSON body");
        body["n_predict"] = json!(TOKENS);
        let (a, b) = (ours.tokens(&body), theirs.tokens(&body));
        assert!(!a.is_empty() && !b.is_empty(), "prompt {number}: no tokens");
        let same = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
        if same == a.len().max(b.len()) {
            agreeing += 1;
            println!("{number:6}  {same:5}");
            continue;
        }
        let (Some(&x), Some(&y)) = (a.get(same), b.get(same)) else {
            panic!(
                "prompt {number}: equal up to {same} tokens, then one stops: {} and {}",
                a.len(),
                b.len()
            );
        };
        let mut prompt = ours.tokenize(&body["prompt"]);
        assert_eq!(
            prompt,
            theirs.tokenize(&body["prompt"]),
            "prompt {number} is tokenized differently"
        );
        prompt.extend(&a[..same]);
        let in_ours = gap(&ours.next_best(&body, &prompt), y);
        let in_theirs = gap(&theirs.next_best(&body, &prompt), x);
        println!(
            "{number:6}  {same:5}  {same:8}  {x:6}  {y:6}  {in_ours:11.4?}  {in_theirs:13.4?}"
        );
        for gap in [in_ours, in_theirs] {
            assert!(
                gap.is_some_and(|gap| gap < NEAR_TIE),
                "prompt {number} differs at token {same} where it is no near-tie: {x} ({in_theirs:?} below their \
                 best) and {y} ({in_ours:?} below ours)"
            );
        }
    }
    println!("{agreeing} of 10 prompts agree for all their tokens (up to {TOKENS})");
    assert!(
        agreeing >= MUST_AGREE,
        "only {agreeing} of 10 prompts agree"
    );
}
