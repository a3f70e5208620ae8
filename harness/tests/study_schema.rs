//! The JSON Schema of study files: what is published is what the program prints, it takes the
//! studies that the program takes, and it refuses what the program refuses.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use palindrome_harness::study::{StudyFile, study_schema};
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn validator() -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(&study_schema()).unwrap();
    jsonschema::draft202012::meta::validate(&schema).expect("a schema of its own draft");
    jsonschema::draft202012::new(&schema).unwrap()
}

fn json(text: &str) -> Value {
    toml::from_str(text).unwrap()
}

/// Study files of the repository: those to run, and those of kept archives.
fn studies() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["workloads", "archives"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let archived = path.join("study.toml");
            if archived.is_file() {
                found.push(archived);
            } else if path.extension().is_some_and(|e| e == "toml") {
                found.push(path);
            }
        }
    }
    assert!(found.len() > 5, "{found:?}");
    found
}

#[test]
fn the_published_schema_is_what_the_command_prints() {
    let printed = Command::new(env!("CARGO_BIN_EXE_palindrome"))
        .args(["schema", "study"])
        .output()
        .unwrap();
    assert!(printed.status.success());
    let printed = String::from_utf8(printed.stdout).unwrap();
    let published = fs::read_to_string(root().join("docs/study.schema.json")).unwrap();
    assert!(
        printed == published,
        "docs/study.schema.json is not what `palindrome schema study` prints: write it again"
    );
}

#[test]
fn every_study_of_the_repository_is_valid() {
    let validator = validator();
    for path in studies() {
        let text = fs::read_to_string(&path).unwrap();
        StudyFile::parse(&path, &text).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&json(&text))
            .map(|e| format!("{}: {e}", e.instance_path()))
            .collect();
        assert_eq!(errors, [""; 0], "{}", path.display());
    }
}

const WHOLE: &str = r#"name = "all of it"
question = "?"
seed = 18446744073709551615
quartets = 6
burn_in = false
primary = "goodput"
margin = 0.05
gate = [{ metric = "ttft", margin = 0.1, direction = "either", level = 0 }, { metric = "tpot", margin = 0.2 }]
assumed_spread = 0.01
assumed_session_s = 12.5
identity = "none"
strict = true
looks = { at = [2, 6], spending = "pocock" }
limits = { ttft_s = 1.5, tpot_s = 1 }

[base]
kind = "llama-cpp"
model = "m.gguf"
threads = 2
ctx = 4096
args = ["-fa"]
env = { A = "b" }
program = "llama-server"

[base.expect]
backend = "cpu"
gpu_layers = 0
slots = 1
threads_batch = 2
batch = 512
ubatch = 512
cpu_features = ["AVX2"]
cpus = "0-3"
model_sha256 = "0123456789ab"
flash_attention = true
kv_type = "f16"
mmap = true
version = "b1"

[[arm]]
name = "A"
label = "first"

[[arm]]
name = "B"
kind = "openai"
command = ["serve", "{port}"]
health = "/ready"
build = ["make"]
rev = "HEAD~3"
repo = "."

[[arm]]
name = "C"
kind = "mock"
script = "mock.toml"

[workload]
bodies = ["one.json"]
warmups = []
path = "/v1/completions"
expect_cached = "any"
timeout_s = 5

[protocol]
kind = "open-loop"
rates_rps = [0.5, 1]
seed = 3
requests = [5, 10]
primary_level = 0.5

[guards]
min_free_ram_mb = 0
max_load = 2.5
max_psi_cpu_some10 = 5
max_psi_memory_some10 = 100
allow_other_servers = true
wait_s = 0

[server]
ready_timeout_s = 60
stop_grace_s = 0
"#;

/// Whether program and schema take a text; they must agree.
#[track_caller]
fn taken(validator: &jsonschema::Validator, text: &str) -> bool {
    let by_program = StudyFile::parse(Path::new("study.toml"), text);
    let by_schema = validator.is_valid(&json(text));
    assert_eq!(
        by_program.is_ok(),
        by_schema,
        "{:?}\n{text}",
        by_program.err()
    );
    by_schema
}

#[test]
fn program_and_schema_take_and_refuse_alike() {
    let validator = validator();
    assert!(taken(&validator, WHOLE));
    // A needed table or key left out, one by one.
    for needed in [
        "name = \"all of it\"",
        "bodies = [\"one.json\"]",
        "name = \"B\"",
        "rates_rps = [0.5, 1]\n",
    ] {
        assert!(WHOLE.contains(needed));
        assert!(
            !taken(&validator, &WHOLE.replacen(needed, "", 1)),
            "{needed}"
        );
    }
    let mut changed = 0;
    for line in WHOLE.lines().filter(|line| line.contains(" = ")) {
        let (key, value) = line.split_once(" = ").unwrap();
        // Another type, an unknown name, and a number that nothing may be.
        let mut wrong = vec![format!("{key}x = {value}")];
        wrong.push(match value.as_bytes()[0] {
            b'"' => format!("{key} = 5"),
            _ => format!("{key} = \"words\""),
        });
        if value.parse::<f64>().is_ok() {
            wrong.push(format!("{key} = -1"));
        }
        for wrong in wrong {
            let text = WHOLE.replacen(line, &wrong, 1);
            assert!(!taken(&validator, &text), "{wrong}");
            changed += 1;
        }
    }
    assert!(changed > 80, "{changed}");
    for (from, to) in [
        ("quartets = 6", "quartets = 0"),
        ("quartets = 6", "quartets = 1001"),
        ("margin = 0.05", "margin = 1"),
        ("margin = 0.05", "margin = 0"),
        ("threads = 2", "threads = 0"),
        ("threads = 2", "threads = 4294967296"),
        ("timeout_s = 5", "timeout_s = 0"),
        ("timeout_s = 5", "timeout_s = 864001"),
        ("max_psi_cpu_some10 = 5", "max_psi_cpu_some10 = 101"),
        ("ttft_s = 1.5", "ttft_s = 0"),
        ("bodies = [\"one.json\"]", "bodies = []"),
        ("requests = [5, 10]", "requests = 0"),
        ("rates_rps = [0.5, 1]", "rates_rps = [0.5, 0]"),
        ("kind = \"open-loop\"", "kind = \"closed-loop\""),
        ("identity = \"none\"", "identity = \"some\""),
        ("spending = \"pocock\"", "spending = \"at once\""),
        ("seed = 3", "copies = 2"),
        ("env = { A = \"b\" }", "env = { A = 1 }"),
        ("args = [\"-fa\"]", "args = [\"-fa\", 1]"),
    ] {
        assert!(WHOLE.contains(from), "{from}");
        assert!(!taken(&validator, &WHOLE.replacen(from, to, 1)), "{to}");
    }
}
