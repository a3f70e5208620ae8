//! `serve`: the HTTP server.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;

use super::args::{ModelArgs, load_failure};
use super::failure::Failure;
use crate::model::LoadedModel;
use crate::scheduler::{DEFAULT_PARALLEL, Engine};
use crate::server::{ApiKeys, App, AppOptions, Backend, ServeError, ServeOptions, serve};

/// Flags of `serve`.
#[derive(Args)]
pub struct ServeArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// Port to listen on; 0 takes a free one
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// Ask clients for this key (better: --api-key-file, which other users cannot see)
    #[arg(long, value_name = "KEY")]
    api_key: Option<String>,
    /// Ask clients for one of the keys in this file, one a line
    #[arg(long, value_name = "FILE")]
    api_key_file: Option<PathBuf>,
    /// Requests worked on at once (also -np); each has the whole --ctx, further ones wait
    #[arg(long, default_value_t = DEFAULT_PARALLEL as u16, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    parallel: u16,
    /// The model's name towards clients [default: the file's own]
    #[arg(long, short = 'a', value_name = "NAME")]
    alias: Option<String>,
    /// Largest request body
    #[arg(long, default_value_t = 32, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=4096))]
    body_limit_mib: u32,
    /// How long running requests may take to end after SIGTERM
    #[arg(long, default_value_t = 5, value_name = "S", value_parser = clap::value_parser!(u64).range(0..=3600))]
    drain_seconds: u64,
    /// How long a client may take over its request head, or idle between requests
    #[arg(long, default_value_t = 30, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=3600))]
    header_timeout_seconds: u64,
}

#[cfg(test)]
impl ServeArgs {
    pub(super) fn parallel(&self) -> u16 {
        self.parallel
    }
}

/// Keys stay out of whatever prints arguments.
impl std::fmt::Debug for ServeArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServeArgs")
            .field("model", &self.model)
            .field("host", &self.host)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

/// Serves until told to stop.
pub fn run(args: &ServeArgs) -> Result<ExitCode, Failure> {
    let engine_options = args.model.options()?;
    let keys = keys(args)?;
    if keys.is_open() && !is_loopback(&args.host) {
        eprintln!(
            "warning: {} can be reached from other machines and no --api-key is set: anyone there may use this server",
            args.host
        );
    }
    let app = Arc::new(App::new(AppOptions {
        keys,
        alias: args.alias.clone(),
        model_path: args.model.load.model.display().to_string(),
        body_limit_bytes: args.body_limit_mib as usize * 1024 * 1024,
    }));
    let options = ServeOptions {
        host: args.host.clone(),
        port: args.port,
        drain: Duration::from_secs(args.drain_seconds),
        header_timeout: Duration::from_secs(args.header_timeout_seconds),
        ..ServeOptions::default()
    };
    let parallel = usize::from(args.parallel);
    let model = args.model.clone();
    let load = move || {
        // The port is open by now, and says that the model is loading.
        let path = model.file().map_err(|failure| failure.to_string())?;
        let began = Instant::now();
        let engine = LoadedModel::load(&path, &engine_options)
            .and_then(|model| Engine::start(model, parallel))
            .map_err(|error| error.to_string())?;
        eprintln!(
            "loaded {} ({}, context {}, {} at once) in {:.2} s; {} threads, isa {}, activations {}, K/V {}",
            engine.model_name(),
            engine.architecture(),
            engine.n_ctx(),
            engine.parallel(),
            began.elapsed().as_secs_f64(),
            engine.threads(),
            engine.isa().name(),
            engine.activations().name(),
            engine.kv_type().name(),
        );
        let backend: Arc<dyn Backend> = Arc::new(engine);
        Ok(backend)
    };
    let on_bound = |address| eprintln!("listening on http://{address}");
    match serve(&options, app, on_bound, load) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(ServeError::Load(message)) => Err(load_failure(&args.model.load.model, message)),
        Err(error) => Err(Failure::new(error)),
    }
}

fn keys(args: &ServeArgs) -> Result<ApiKeys, Failure> {
    let file = match &args.api_key_file {
        None => String::new(),
        Some(path) => std::fs::read_to_string(path).map_err(|error| {
            Failure::new(format!(
                "cannot read the API key file {}: {error}",
                path.display()
            ))
        })?,
    };
    let keys = ApiKeys::new(file.lines().chain(args.api_key.as_deref()));
    if keys.is_open() && (args.api_key.is_some() || args.api_key_file.is_some()) {
        return Err(
            Failure::new("an API key was asked for, but none was given: it is empty")
                .hint("--api-key takes the key, --api-key-file a file with one key a line"),
        );
    }
    Ok(keys)
}

fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}
