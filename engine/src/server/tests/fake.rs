//! A backend that says what its script says, and a server around it.

use std::collections::VecDeque;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{Notify, oneshot};

use crate::chat::ChatTemplate;
use crate::scheduler::{
    EngineError, EngineStats, Finish, GenEvent, GenRequest, GenSummary, SlotWork, TokenEvent,
};
use crate::server::backend::{Backend, EventSource, Runtime};
use crate::server::listen::{ServeOptions, bind, run};
use crate::server::{ApiKeys, App, AppOptions};
use crate::tokenizer::{Tokenizer, Vocabulary};

pub const START: u32 = 256;
pub const END: u32 = 257;
pub const MESSAGE: u32 = 258;
pub const CHANNEL: u32 = 259;
pub const CONSTRAIN: u32 = 260;
pub const RETURN: u32 = 261;
pub const CALL: u32 = 262;

const SPECIALS: [&str; 7] = [
    "<|start|>",
    "<|end|>",
    "<|message|>",
    "<|channel|>",
    "<|constrain|>",
    "<|return|>",
    "<|call|>",
];

const HARMONY: &str = "{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>\
    {% endfor %}{% if tools %}<|start|>developer<|message|>{{ tools | length }} tools<|end|>{% endif %}\
    {% if add_generation_prompt %}<|start|>assistant{% endif %}{# <|channel|> #}";

/// A token a byte, then harmony's.
pub fn tokenizer() -> Tokenizer {
    let printable = |byte: u32| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let mut next = 256;
    let mut tokens: Vec<String> = (0..256)
        .map(|byte| {
            let code = if printable(byte) {
                byte
            } else {
                next += 1;
                next - 1
            };
            char::from_u32(code).unwrap().to_string()
        })
        .collect();
    tokens.extend(SPECIALS.iter().map(|text| (*text).to_owned()));
    let mut token_types = vec![1; 256];
    token_types.extend([3; SPECIALS.len()]);
    Tokenizer::new(&Vocabulary {
        pre: "gpt-4o".into(),
        tokens,
        token_types: Some(token_types),
        eos: Some(RETURN),
        ..Vocabulary::default()
    })
    .unwrap()
}

/// What happens next in a generation.
#[derive(Clone, Debug)]
pub enum Act {
    Token(u32),
    /// A token a byte.
    Text(&'static str),
    /// Nothing, until the gate opens.
    Gate,
    Fail(EngineError),
    End(Finish),
    /// The engine goes away.
    Vanish,
}

pub struct Fake {
    tokenizer: Tokenizer,
    template: Option<ChatTemplate>,
    scripts: Mutex<VecDeque<Vec<Act>>>,
    pub requests: Mutex<Vec<GenRequest>>,
    pub gate: Arc<Notify>,
    pub cancelled: Arc<AtomicUsize>,
    pub cache_n: AtomicUsize,
    pub refusal: Mutex<Option<EngineError>>,
}

impl Fake {
    /// Answers request after request by `scripts`.
    pub fn new(scripts: Vec<Vec<Act>>) -> Arc<Self> {
        Arc::new(Self::build(scripts, None))
    }
    /// With a chat template.
    pub fn with_template(scripts: Vec<Vec<Act>>, source: &str) -> Arc<Self> {
        let template = ChatTemplate::new(source, "", "").unwrap();
        Arc::new(Self::build(scripts, Some(template)))
    }
    /// With a harmony template.
    pub fn harmony(scripts: Vec<Vec<Act>>) -> Arc<Self> {
        Self::with_template(scripts, HARMONY)
    }
    fn build(scripts: Vec<Vec<Act>>, template: Option<ChatTemplate>) -> Self {
        Self {
            tokenizer: tokenizer(),
            template,
            scripts: Mutex::new(scripts.into()),
            requests: Mutex::default(),
            gate: Arc::default(),
            cancelled: Arc::default(),
            cache_n: AtomicUsize::new(0),
            refusal: Mutex::default(),
        }
    }
    pub fn last_request(&self) -> GenRequest {
        self.requests.lock().unwrap().last().unwrap().clone()
    }
    pub fn cancellations(&self) -> usize {
        self.cancelled.load(Ordering::SeqCst)
    }
}

struct FakeSource {
    acts: VecDeque<Act>,
    gate: Arc<Notify>,
    cancelled: Arc<AtomicUsize>,
    summary: GenSummary,
    started: bool,
    over: bool,
}

impl FakeSource {
    async fn step(&mut self) -> Option<GenEvent> {
        if !self.started {
            self.started = true;
            return Some(GenEvent::Started {
                slot: 1,
                cache_n: self.summary.cache_n,
            });
        }
        loop {
            match self.acts.front()? {
                Act::Gate => {
                    self.gate.notified().await;
                    self.acts.pop_front();
                }
                Act::Text(text) => {
                    let bytes: Vec<u8> = text.bytes().collect();
                    self.acts.pop_front();
                    for byte in bytes.into_iter().rev() {
                        self.acts.push_front(Act::Token(u32::from(byte)));
                    }
                }
                Act::Token(id) => {
                    let id = *id;
                    self.acts.pop_front();
                    self.summary.predicted_n += 1;
                    return Some(GenEvent::Token(TokenEvent {
                        id,
                        logprob: Some(-0.25),
                        top: vec![(id, -0.25), (120, -1.5)],
                    }));
                }
                Act::End(finish) => {
                    self.over = true;
                    self.summary.finish = *finish;
                    self.acts.clear();
                    return Some(GenEvent::Done(self.summary.clone()));
                }
                Act::Fail(error) => {
                    self.over = true;
                    let error = error.clone();
                    self.acts.clear();
                    return Some(GenEvent::Failed(error));
                }
                Act::Vanish => {
                    self.over = true;
                    return None;
                }
            }
        }
    }
}

impl EventSource for FakeSource {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<GenEvent>> + Send + '_>> {
        Box::pin(self.step())
    }
}

impl Drop for FakeSource {
    fn drop(&mut self) {
        if !self.over {
            self.cancelled.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Backend for Fake {
    fn submit(&self, request: GenRequest) -> Result<Box<dyn EventSource>, EngineError> {
        if let Some(refusal) = self.refusal.lock().unwrap().clone() {
            return Err(refusal);
        }
        let acts = self.scripts.lock().unwrap().pop_front();
        let cache_n = self.cache_n.load(Ordering::SeqCst);
        let summary = GenSummary {
            finish: Finish::Stop,
            cache_n,
            prompt_n: request.prompt.len() - cache_n,
            prompt_ms: 10.0,
            predicted_n: 0,
            predicted_ms: 5.0,
            seed: request.sampling.seed.unwrap(),
            prompt_hash: "aa".into(),
            generated_hash: "bb".into(),
            faults: 0,
        };
        self.requests.lock().unwrap().push(request);
        Ok(Box::new(FakeSource {
            acts: acts.expect("a script for each request").into(),
            gate: self.gate.clone(),
            cancelled: self.cancelled.clone(),
            summary,
            started: false,
            over: false,
        }))
    }
    fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }
    fn template(&self) -> Option<&ChatTemplate> {
        self.template.as_ref()
    }
    fn n_ctx(&self) -> usize {
        512
    }
    fn model_name(&self) -> &'static str {
        "fake"
    }
    fn architecture(&self) -> &'static str {
        "gpt-oss"
    }
    fn stats(&self) -> EngineStats {
        EngineStats {
            waiting: 3,
            running: 1,
            slots: vec![
                Some(SlotWork {
                    prompt_tokens: 100,
                    cached_tokens: 30,
                    computed_tokens: 70,
                    generated_tokens: 5,
                }),
                None,
            ],
            ..EngineStats::default()
        }
    }
    fn runtime(&self) -> Runtime {
        Runtime {
            isa: "scalar".into(),
            activations: "int16".into(),
            kv_type: "f16".into(),
            threads: 2,
        }
    }
    fn shut_down(&self) {
        self.gate.notify_waiters();
    }
}

/// A running server; it stops when dropped.
pub struct Server {
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub fn start(backend: Arc<Fake>) -> Self {
        Self::with(options(), ServeOptions::default(), Some(backend))
    }
    pub fn with(app: AppOptions, serve: ServeOptions, backend: Option<Arc<Fake>>) -> Self {
        let app = Arc::new(App::new(app));
        if let Some(backend) = backend {
            app.set_backend(backend);
        }
        let serve = ServeOptions { port: 0, ..serve };
        let (stop, stopped) = oneshot::channel::<()>();
        let (told, address) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async {
                let listener = bind(&serve).unwrap();
                told.send(listener.local_addr().unwrap()).unwrap();
                run(&serve, listener, app, stopped, std::future::pending())
                    .await
                    .ok();
            });
        });
        Self {
            address: address.recv().unwrap(),
            stop: Some(stop),
            thread: Some(thread),
        }
    }
    /// Asks it to stop, without waiting.
    pub fn ask_to_stop(&mut self) {
        self.stop.take().map(|stop| stop.send(()));
    }
    /// Waits until it has stopped.
    pub fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ask_to_stop();
        if !std::thread::panicking() {
            self.join();
        }
    }
}

pub fn options() -> AppOptions {
    AppOptions {
        keys: ApiKeys::default(),
        alias: None,
        model_path: "fake.gguf".into(),
        body_limit_bytes: 1 << 20,
    }
}

/// Waits for what another thread is about to do.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("never came true: {what}");
}
