//! The readers, on what real servers printed and answered.

use palindrome_harness::derive::{Asked, settings};
use serde_json::json;

use crate::archive_fixture::{launch, plan};
use crate::support::readback_of;

/// What a llama.cpp server printed at its usual verbosity, and at `-lv 5`.
const QUIET_LOG: &str = include_str!("../captured/llama-cpp.log");
const VERBOSE_LOG: &str = include_str!("../captured/llama-cpp-verbose.log");
const PROPS: &str = include_str!("../captured/llama-cpp-props.json");

/// Found values by name, as JSON; what is not there is not shown.
fn found(log: &str, props: &str) -> serde_json::Value {
    let arm_b = &plan(&[true]).sessions[2];
    let mut launch = launch(arm_b, 0);
    launch.build.remove("features");
    let all = settings(&Asked::default(), &launch, &readback_of(log, props));
    let pairs = all
        .iter()
        .filter_map(|s| Some((s.name.clone(), s.found.clone()?)));
    serde_json::Value::Object(pairs.collect())
}

#[test]
fn a_real_log_and_its_props_say_what_the_server_did() {
    let verbose = found(VERBOSE_LOG, "");
    for (name, value) in [
        ("backend", json!("cpu")),
        ("ctx", json!(2048)),
        ("slots", json!(1)),
        ("threads", json!(1)),
        ("threads_batch", json!(1)),
        ("batch", json!(256)),
        ("ubatch", json!(128)),
        ("flash_attention", json!(true)),
        ("kv_type", json!("f16")),
        (
            "cpu_features",
            json!([
                "SSE3",
                "SSSE3",
                "AVX",
                "AVX2",
                "F16C",
                "FMA",
                "BMI2",
                "LLAMAFILE",
                "OPENMP",
                "REPACK"
            ]),
        ),
    ] {
        assert_eq!(verbose[name], value, "{name}");
    }
    let quiet = found(QUIET_LOG, PROPS);
    assert_eq!(
        (&quiet["threads"], &quiet["ctx"]),
        (&json!(2), &json!(4096))
    );
    assert_eq!(quiet["version"], json!("b0-unknown"));
    assert_eq!(quiet["model_path"], json!("/models/palindrome-small.gguf"));
    for unseen in [
        "batch",
        "ubatch",
        "flash_attention",
        "kv_type",
        "cpu_features",
        "backend",
        "gpu_layers",
    ] {
        assert_eq!(quiet[unseen], serde_json::Value::Null, "{unseen}");
    }
}

#[test]
fn the_bundled_engine_says_the_same_in_props_and_in_its_log() {
    let hash = "b4cd4f0d1e2619375c4936ef5f1d9313647c031463d7d9ce6142db1eecd83717";
    let log = format!(
        "listening on http://127.0.0.1:39225\n\
         reading gpt-oss-12.gguf (sha256 {hash}) from its store /stores/gpt-oss-12-fa652db2.store\n\
         loaded synthetic gpt-oss (gpt-oss, context 4096, 4 at once) in 0.64 s; 2 threads, isa avx2, activations int8, K/V f16\n"
    );
    let arm_a = &plan(&[true]).sessions[1];
    let launch = launch(arm_a, 0);
    let found = |log: &str, props: &str, name: &str| {
        let all = settings(&Asked::default(), &launch, &readback_of(log, props));
        all.into_iter()
            .find(|s| s.name == name)
            .and_then(|s| s.found)
    };
    let props =
        r#"{"threads": 2, "n_ctx": 4096, "isa": "avx2", "total_slots": 4, "kv_type": "f16"}"#;
    for (name, value) in [
        ("threads", json!(2)),
        ("ctx", json!(4096)),
        ("cpu_features", json!(["AVX2", "FMA", "F16C"])),
    ] {
        assert_eq!(
            found(&log, "", name),
            Some(value.clone()),
            "{name} by the log"
        );
        assert_eq!(found("", props, name), Some(value), "{name} by /props");
    }
    assert_eq!(found(&log, "", "model_sha256"), Some(json!(hash)));
    assert_eq!(found("", props, "kv_type"), Some(json!("f16")));
    assert_eq!(found("", props, "batch"), None);
}

#[test]
fn layers_on_a_device_are_those_of_the_last_load() {
    let log = "load_tensors: loading model tensors, this can take a while... (load_mode = none)\n\
               load_tensors: offloaded 25/25 layers to GPU\n\
               load_tensors:        CUDA0 model buffer size =     0.00 MiB\n\
               load_tensors: loading model tensors, this can take a while... (load_mode = mmap)\n\
               load_tensors: offloading 12 repeating layers to GPU\n\
               load_tensors: offloaded 12/25 layers to GPU\n\
               load_tensors:   CPU_Mapped model buffer size =  6000.50 MiB\n\
               load_tensors:    CUDA_Host model buffer size =   500.00 MiB\n\
               load_tensors:        CUDA0 model buffer size =  5000.25 MiB\n\
               load_tensors:        CUDA1 model buffer size =  1000.00 MiB\n\
               llama_context: flash_attn            = disabled\n";
    let found = found(log, "");
    assert_eq!(
        (&found["gpu_layers"], &found["model_layers"]),
        (&json!(12), &json!(25))
    );
    assert_eq!(found["backend"], json!("cuda"));
    assert_eq!(found["device_model_mib"], json!(6000.25));
    assert_eq!(found["flash_attention"], json!(false));
}
