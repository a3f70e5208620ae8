//! Forgeries that only a comparison of facts shows, and what findings say.

mod archive_fixture;

use std::fs;
use std::path::Path;

use archive_fixture::forge::{caught, edit, reseal};
use archive_fixture::{copy, create, host, plan, sealed, write_session};
use palindrome_harness::archive::{Archive, list_files};
use palindrome_harness::audit::{Audit, audit};
use palindrome_harness::derive::derive;
use serde_json::{Value, json};

/// Changes one session's `launch.json` and makes every hash match again.
fn relaunched(copy: &Path, session: &str, change: impl FnOnce(&mut Value)) {
    edit(copy, &format!("sessions/{session}/launch.json"), |text| {
        let mut launch: Value = serde_json::from_str(text).unwrap();
        change(&mut launch);
        serde_json::to_string_pretty(&launch).unwrap() + "\n"
    });
    reseal(copy);
}

/// The audit of a changed copy.
fn audited(original: &Path, mutate: impl FnOnce(&Path)) -> Audit {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("copy");
    copy(original, &path);
    mutate(&path);
    audit(&path).unwrap()
}

#[test]
fn one_sessions_forged_launch_is_caught_although_every_hash_matches() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true]);
    type Change = fn(&mut Value);
    let changes: [(&str, Change); 9] = [
        (
            "command: found server --port 8080 <model> -t 8, expected",
            |l| {
                l["command"].as_array_mut().unwrap().push("-t".into());
                l["command"].as_array_mut().unwrap().push("8".into());
            },
        ),
        ("binary/sha256: found 0000", |l| {
            l["binary"]["sha256"] = "0".repeat(64).into();
        }),
        ("binary/bytes: found 4, expected 3", |l| {
            l["binary"]["bytes"] = 4.into();
        }),
        ("models/0/sha256: found 0000", |l| {
            l["models"][0]["sha256"] = "0".repeat(64).into();
        }),
        ("build/version: found b9, expected b11434", |l| {
            l["build"]["version"] = "b9".into();
        }),
        ("build/commit: found abc, expected nothing", |l| {
            l["build"]["commit"] = "abc".into();
        }),
        ("env/GGML_X: found 1, expected nothing", |l| {
            l["env"]["GGML_X"] = "1".into();
        }),
        ("label: found other, expected llama.cpp", |l| {
            l["label"] = "other".into();
        }),
        ("kind: found openai, expected llama-cpp", |l| {
            l["kind"] = "openai".into();
        }),
    ];
    for (says, change) in changes {
        let says = format!("sessions/03-B/launch.json {says}");
        caught(&path, &says, &says, |copy| relaunched(copy, "03-B", change));
    }
    // Port, process and folders are a session's own.
    let found = audited(&path, |copy| {
        relaunched(copy, "03-B", |l| {
            l["port"] = 9090.into();
            l["command"][2] = "9090".into();
            l["pid"] = 9.into();
            l["cwd"] = "/elsewhere".into();
            l["binary"]["path"] = "/elsewhere/server".into();
        });
    });
    assert_eq!(found.mismatches, []);
}

#[test]
fn launches_that_agree_with_each_other_must_agree_with_the_study() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true]);
    let says = "launch.json env/OMP_NUM_THREADS: found 1, expected nothing by study.toml";
    caught(&path, "env of a whole arm", says, |copy| {
        for session in ["02-B", "03-B"] {
            relaunched(copy, session, |l| l["env"]["OMP_NUM_THREADS"] = "1".into());
        }
    });
}

#[test]
fn a_key_that_stands_twice_is_named() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true]);
    // A reader that takes the first sees another value than one that takes the last.
    for (file, key) in [
        ("sessions/02-B/requests.jsonl", "done_ns"),
        ("sessions/02-B/launch.json", "command"),
        ("sessions/02-B/end.json", "ended_ns"),
        ("sessions/02-B/host.jsonl", "load1"),
        ("sessions/02-B/streams/000.arrivals.json", "sent_ns"),
    ] {
        let what = format!("{key} twice in {file}");
        caught(&path, &what, file, |copy| {
            edit(copy, file, |t| {
                t.replacen('{', &format!("{{\"{key}\":1,"), 1)
            });
            reseal(copy);
            let found = audit(copy).unwrap().to_string();
            let named = format!("the key `{key}` is there twice");
            assert!(found.contains(&named), "{what}: {found}");
        });
    }
    for file in [
        "host.json",
        "manifest.json",
        "figures.json",
        "sessions/02-B/session.json",
        "events.jsonl",
    ] {
        caught(&path, file, "the key `schema` is there twice", |copy| {
            edit(copy, file, |t| {
                t.replacen("\"schema\"", "\"schema\":\"1.0\",\"schema\"", 1)
            });
        });
    }
    caught(&path, "plan.json", "plan.json", |copy| {
        edit(copy, "plan.json", |t| t.replacen('{', "{\"seed\":1,", 1));
        let error = audit(copy).unwrap_err().to_string();
        assert!(
            error.starts_with("plan.json: the key `seed` is there twice"),
            "{error}"
        );
    });
}

#[test]
fn what_cannot_be_read_hides_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true]);
    for gone in list_files(&path).unwrap() {
        if gone == "plan.json" || gone == "figures.json" {
            continue;
        }
        let found = audited(&path, |copy| {
            // Two lies elsewhere: a record's time, and a figure of a session that is whole.
            let session = if gone.contains("04-A") {
                "01-A"
            } else {
                "04-A"
            };
            edit(copy, &format!("sessions/{session}/requests.jsonl"), |t| {
                t.replacen("\"generated_tokens\":5", "\"generated_tokens\":6", 1)
            });
            edit(copy, "figures.json", |text| {
                let mut figures: Value = serde_json::from_str(text).unwrap();
                let all = figures["figures"].as_array_mut().unwrap();
                let id = format!("request/{session}/001/ttft");
                let lie = all.iter_mut().find(|f| f["id"] == id.as_str()).unwrap();
                lie["value"] = 0.5.into();
                serde_json::to_string_pretty(&figures).unwrap() + "\n"
            });
            fs::remove_file(copy.join(&gone)).unwrap();
        });
        let text = found.to_string();
        for says in [
            format!("{gone}: "),
            "requests.jsonl 0/generated_tokens: found 6, expected 5 by the raw stream".into(),
            "/001/ttft value: found 0.5, expected 0.".into(),
        ] {
            let named =
                text.contains(&says) || (says == format!("{gone}: ") && text.contains(&gone));
            assert!(named, "without {gone} nothing says {says:?}:\n{text}");
        }
        assert!(
            text.lines().count() < 20,
            "one loss, too many findings:\n{text}"
        );
    }
}

#[test]
fn figures_that_rest_on_what_is_gone_are_counted_and_not_compared() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true]);
    let whole = audit(&path).unwrap();
    let telemetry = audited(&path, |copy| {
        fs::remove_file(copy.join("sessions/02-B/host.jsonl")).unwrap();
    });
    assert_eq!(
        (whole.figures_not_compared, telemetry.figures_not_compared),
        (0, 4)
    );
    assert_eq!(telemetry.figures + 4, whole.figures);
    let session = audited(&path, |copy| {
        fs::remove_dir_all(copy.join("sessions/02-B")).unwrap();
    });
    let of_it = |figures: &palindrome_harness::derive::Figures| {
        let own = |id: &str| id.starts_with("session/02-B/") || id.starts_with("request/02-B/");
        figures.all().iter().filter(|f| own(f.id())).count()
    };
    let published = Archive::open(&path).unwrap().figures().unwrap().unwrap();
    assert!(session.figures_not_compared > of_it(&published));
    assert!(session.figures > 200, "{session}");
}

#[test]
fn findings_are_short_sentences_without_the_programs_own_notation() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true]);
    let found = audited(&path, |copy| {
        edit(copy, "figures.json", |t| {
            t.replacen("MEASURED", "ASSUMED", 1).replacen(
                "generated tokens at",
                "made tokens at",
                1,
            )
        });
        edit(copy, "workload/one.json", |t| t.replace("one", "two"));
        edit(copy, "sessions/02-B/requests.jsonl", |t| {
            t.replacen(
                "\"token_source\":\"stream-ids\"",
                "\"token_source\":null",
                1,
            )
        });
        reseal(copy);
    });
    let redacted = |text: &str| {
        let is_hash = |w: &str| {
            w.len() > 12
                && w.trim_matches(['…', ','])
                    .bytes()
                    .all(|b| b.is_ascii_hexdigit())
        };
        let words = text.split(' ').map(|w| if is_hash(w) { "HASH" } else { w });
        words.collect::<Vec<_>>().join(" ")
    };
    let lines: Vec<String> = found
        .mismatches
        .iter()
        .map(|m| redacted(&m.to_string()))
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
    for line in found.mismatches.iter().map(ToString::to_string) {
        assert!(line.chars().count() < 240, "{line}");
        for notation in ["Some(", "None", "{ ", "\"\\\""] {
            assert!(!line.contains(notation), "{line}");
        }
    }
}

#[test]
fn a_study_that_went_on_on_another_machine_or_with_another_log_is_caught() {
    let root = tempfile::tempdir().unwrap();
    let coins = [true];
    let writer = create(root.path(), &coins);
    let event = |kind: &str, detail: Value| writer.event(kind, detail).unwrap();
    for planned in &plan(&coins).sessions {
        write_session(&writer, planned);
    }
    let (same, mut other) = (host(), host());
    other.cpu_model = Some("Another CPU".into());
    event("host-on-resume", json!({ "host": same }));
    event("host-on-resume", json!({ "host": other }));
    event(
        "server-ready",
        json!({ "session": "01-A", "pid": 101, "port": 8080 }),
    );
    event(
        "server-ready",
        json!({ "session": "02-B", "pid": 102, "port": 8081 }),
    );
    let figures = derive(&Archive::open(writer.path()).unwrap().facts().unwrap());
    let path = writer.seal(&figures).unwrap();
    let found: Vec<String> = audit(&path)
        .unwrap()
        .mismatches
        .iter()
        .map(ToString::to_string)
        .collect();
    let resumed = "host/cpu_model: found Another CPU, expected Test CPU by host.json";
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(
        found[0],
        "sessions/02-B/launch.json port: found 8080, expected 8081 by events.jsonl"
    );
    assert!(
        found[1].starts_with("events.jsonl ") && found[1].ends_with(resumed),
        "{found:?}"
    );
}

#[test]
fn an_unfinished_archive_is_one_finding_and_what_is_there_is_checked() {
    let root = tempfile::tempdir().unwrap();
    let writer = create(root.path(), &[true]);
    let sessions = plan(&[true]).sessions;
    for planned in &sessions[..2] {
        write_session(&writer, planned);
    }
    let under_way = writer.begin_session(&sessions[2]).unwrap();
    let found = audit(writer.path()).unwrap();
    assert_eq!(found.mismatches.len(), 1, "{found}");
    let told = found.mismatches[0].to_string();
    let says = format!(
        "SEAL: is missing: the study is unfinished, 2 of {} planned sessions are recorded; to go on: palindrome run \
         STUDY.toml --resume /",
        sessions.len()
    );
    assert!(told.starts_with(&says), "{told}");
    assert!(found.sessions == 2 && found.requests > 0, "{found}");
    drop(under_way);
    // What is recorded is looked at all the same.
    let log = format!("sessions/{:02}-{}/server.log", 1, sessions[1].arm);
    edit(writer.path(), &log, |text| format!("{text}!"));
    let found = audit(writer.path()).unwrap();
    assert_eq!(found.mismatches.len(), 2, "{found}");
    assert!(
        found.to_string().contains("server.log: sha256 is"),
        "{found}"
    );
}
