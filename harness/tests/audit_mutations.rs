//! Seeded mutations of a real archive: the audit catches every one and never cries wolf.

mod archive_fixture;

use std::fs;
use std::path::Path;

use archive_fixture::forge::{caught, edit, reseal, reseal_manifest};
use archive_fixture::{copy, sealed};
use palindrome_harness::archive::{Archive, hash_file, list_files};
use palindrome_harness::audit::audit;

/// SplitMix64 (Steele, Lea, Flood 2014): seeded, so a failure repeats.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

#[test]
fn an_untouched_archive_passes_in_every_order() {
    for coins in [
        vec![true],
        vec![false],
        vec![true, false],
        vec![false, false],
    ] {
        let root = tempfile::tempdir().unwrap();
        let path = sealed(root.path(), &coins);
        let found = audit(&path).unwrap();
        assert_eq!(found.mismatches, [], "{found}");
        let sessions = 1 + 4 * coins.len();
        assert_eq!(
            (found.sessions, found.streams, found.requests),
            (sessions, sessions * 2, sessions * 2)
        );
        assert!(
            found.figures > 300 && found.token_hashes >= sessions * 4 && found.files > 50,
            "{found}"
        );
        // Copied elsewhere under another name it still holds: nothing depends on the place.
        let moved = root.path().join("moved");
        copy(&path, &moved);
        assert_eq!(audit(&moved).unwrap().mismatches, []);
    }
}

#[test]
fn resealing_an_untouched_archive_changes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true]);
    reseal(&path);
    assert_eq!(audit(&path).unwrap().mismatches, []);
}

#[test]
fn a_single_byte_in_any_file_is_caught() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true]);
    let mut random = Random(1);
    let mut tried = 0;
    for file in list_files(&path).unwrap() {
        for _ in 0..2 {
            let bytes = fs::read(path.join(&file)).unwrap();
            let at = random.below(bytes.len());
            let bit = 1_u8 << random.below(8);
            caught(&path, &format!("{file}: byte {at} xor {bit}"), "", |copy| {
                let mut bytes = bytes.clone();
                bytes[at] ^= bit;
                fs::write(copy.join(&file), bytes).unwrap();
            });
            tried += 1;
        }
    }
    assert!(tried > 100, "{tried}");
}

#[test]
fn a_missing_a_truncated_and_an_extra_file_are_caught() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true]);
    for file in list_files(&path).unwrap() {
        caught(&path, &format!("deleted {file}"), "", |copy| {
            fs::remove_file(copy.join(&file)).unwrap();
        });
        caught(&path, &format!("halved {file}"), "", |copy| {
            let bytes = fs::read(copy.join(&file)).unwrap();
            fs::write(copy.join(&file), &bytes[..bytes.len() / 2]).unwrap();
        });
    }
    for extra in [
        "extra.json",
        "workload/three.json",
        "sessions/note",
        "sessions/01-A/streams/9.sse.zst",
        ".hidden",
    ] {
        caught(&path, &format!("added {extra}"), extra, |copy| {
            fs::write(copy.join(extra), b"{}").unwrap();
        });
    }
}

#[test]
fn sessions_removed_swapped_or_added_are_caught_even_when_resealed() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true]);
    for session in ["00-A", "01-A", "02-B", "03-B", "04-A"] {
        caught(
            &path,
            &format!("dropped {session}"),
            "is planned but missing",
            |copy| {
                fs::remove_dir_all(copy.join("sessions").join(session)).unwrap();
                reseal(copy);
            },
        );
    }
    for (a, b) in [
        ("01-A", "02-B"),
        ("03-B", "04-A"),
        ("01-A", "04-A"),
        ("02-B", "03-B"),
    ] {
        caught(
            &path,
            &format!("swapped {a} and {b}"),
            "sessions/",
            |copy| {
                let at = |name: &str| copy.join("sessions").join(name);
                fs::rename(at(a), at("tmp")).unwrap();
                fs::rename(at(b), at(a)).unwrap();
                fs::rename(at("tmp"), at(b)).unwrap();
                reseal(copy);
            },
        );
    }
    caught(
        &path,
        "added a session",
        "is not in the plan",
        |copy_path| {
            copy(
                &copy_path.join("sessions/01-A"),
                &copy_path.join("sessions/05-A"),
            );
            reseal(copy_path);
        },
    );
    caught(&path, "swapped the arms' names", "launch.json", |copy| {
        edit(copy, "sessions/01-A/launch.json", |t| {
            t.replace("\"arm\": \"A\"", "\"arm\": \"B\"")
        });
        reseal(copy);
    });
}

#[test]
fn edited_records_and_figures_are_caught_after_every_hash_was_made_to_match() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true]);
    let archive = Archive::open(&path).unwrap();
    let figures = archive.figures().unwrap().unwrap();
    let mut random = Random(2);
    // Times and counts of records: the raw stream says otherwise.
    for field in [
        "first_token_ns",
        "last_token_ns",
        "done_ns",
        "first_byte_ns",
        "generated_tokens",
        "sent_ns",
    ] {
        for session in ["01-A", "02-B", "04-A"] {
            let file = format!("sessions/{session}/requests.jsonl");
            caught(&path, &format!("{field} of {session}"), field, |copy| {
                edit(copy, &file, |text| {
                    let key = format!("\"{field}\":");
                    let at = text.find(&key).unwrap() + key.len();
                    let rest = &text[at..];
                    let end = rest.find([',', '}']).unwrap();
                    let value: u64 = rest[..end].parse().unwrap();
                    format!("{}{}{}", &text[..at], value + 1, &rest[end..])
                });
                reseal(copy);
            });
        }
    }
    for field in [
        "generated_hash",
        "text_hash",
        "body_sha256",
        "finish_reason",
    ] {
        caught(&path, field, field, |copy| {
            edit(copy, "sessions/03-B/requests.jsonl", |text| {
                text.replacen(&format!("\"{field}\":\""), &format!("\"{field}\":\"x"), 1)
            });
            reseal(copy);
        });
    }
    // Published values, by one bit; labels; formulas; inputs.
    for _ in 0..40 {
        let at = random.below(figures.len());
        let chosen = &figures.all()[at];
        let kind = random.below(4);
        caught(
            &path,
            &format!("{} mutation {kind}", chosen.id()),
            "figures.json",
            |copy| {
                edit(copy, "figures.json", |text| {
                    let mut document: serde_json::Value = serde_json::from_str(text).unwrap();
                    let figure = &mut document["figures"][at];
                    match kind {
                        0 => {
                            let label = if figure["label"] == "MEASURED" {
                                "CALCULATED"
                            } else {
                                "MEASURED"
                            };
                            figure["label"] = label.into();
                        }
                        1 => figure["formula"] = "guess".into(),
                        2 => figure["inputs"] = serde_json::json!(["nothing"]),
                        _ => {
                            let value = figure["value"].as_f64().unwrap_or(0.0);
                            figure["value"] = f64::from_bits(value.to_bits() + 1).into();
                        }
                    }
                    serde_json::to_string_pretty(&document).unwrap() + "\n"
                });
                reseal(copy);
            },
        );
    }
    caught(&path, "verdict", "verdict", |copy| {
        edit(copy, "figures.json", |t| {
            t.replacen("times the rate", "TIMES the rate", 1)
        });
        reseal(copy);
    });
    caught(&path, "warning removed", "verdict", |copy| {
        edit(copy, "figures.json", |t| {
            t.replacen("The baseline was not built", "The baseline was built", 1)
        });
        reseal(copy);
    });
    caught(
        &path,
        "unknown key in the manifest",
        "manifest.json",
        |copy| {
            edit(copy, "manifest.json", |t| {
                t.replacen("\"subject\"", "\"note\": 1,\n  \"subject\"", 1)
            });
            let hash = hash_file(&copy.join("manifest.json")).unwrap();
            fs::write(copy.join("SEAL"), format!("{hash}  manifest.json\n")).unwrap();
        },
    );
}

#[test]
fn an_edited_study_body_stream_or_log_is_caught_after_resealing() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true]);
    caught(&path, "study", "study_sha256", |copy| {
        edit(copy, "study.toml", |t| t.replace("fixture\"", "fixtures\""));
        reseal(copy);
    });
    caught(
        &path,
        "study and its hash in the plan",
        "plan.json",
        |copy| {
            let before = hash_file(&copy.join("study.toml")).unwrap();
            edit(copy, "study.toml", |t| {
                t.replace("quartets = 1", "quartets = 2")
            });
            let after = hash_file(&copy.join("study.toml")).unwrap();
            edit(copy, "plan.json", |t| t.replace(&before, &after));
            reseal(copy);
        },
    );
    for (from, to) in [
        ("\"coins\": [\n    true", "\"coins\": [\n    false"),
        ("\"seed\": ", "\"seed\": 9"),
    ] {
        caught(&path, to, "plan.json", |copy| {
            edit(copy, "plan.json", |t| t.replace(from, to));
            reseal(copy);
        });
    }
    caught(&path, "body", "workload/one.json", |copy| {
        edit(copy, "workload/one.json", |t| t.replace("one", "two"));
        reseal(copy);
    });
    caught(&path, "stream cut", "requests.jsonl", |copy| {
        let file = copy.join("sessions/02-B/streams/000.sse.zst");
        let body = zstd::decode_all(fs::read(&file).unwrap().as_slice()).unwrap();
        fs::write(
            &file,
            zstd::encode_all(&body[..body.len() - 40], 3).unwrap(),
        )
        .unwrap();
        reseal(copy);
    });
    caught(&path, "arrival moved", "requests.jsonl", |copy| {
        edit(copy, "sessions/02-B/streams/000.arrivals.json", |t| {
            let mut raw: serde_json::Value = serde_json::from_str(t).unwrap();
            let ns = raw["arrivals"][0]["ns"].as_u64().unwrap();
            raw["arrivals"][0]["ns"] = (ns - 1000).into();
            raw.to_string() + "\n"
        });
        reseal(copy);
    });
    caught(&path, "session moved in time", "started_ns", |copy| {
        edit(copy, "sessions/03-B/end.json", |t| {
            let mut end: serde_json::Value = serde_json::from_str(t).unwrap();
            end["started_ns"] = 5.into();
            serde_json::to_string_pretty(&end).unwrap() + "\n"
        });
        reseal(copy);
    });
    caught(&path, "event dropped", "events.jsonl", |copy| {
        edit(copy, "events.jsonl", |t| {
            t.split_once('\n').unwrap().1.to_string()
        });
        reseal_manifest(copy);
    });
    caught(&path, "event edited", "events.jsonl", |copy| {
        edit(copy, "events.jsonl", |t| {
            t.replacen("session-begun", "session-begum", 1)
        });
        reseal_manifest(copy);
    });
    caught(&path, "session.json only", "session.json", |copy| {
        edit(copy, "sessions/03-B/server.log", |t| {
            t.replace("8080", "8081")
        });
        reseal_manifest(copy);
    });
    caught(&path, "seal removed", "not sealed", |copy| {
        fs::remove_file(copy.join("SEAL")).unwrap();
    });
}

#[test]
fn an_edited_prompt_fact_is_caught_after_resealing() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true]);
    let file = "sessions/02-B/prompts.jsonl";
    let change = |copy: &Path, change: &dyn Fn(&mut serde_json::Value)| {
        edit(copy, file, |t| {
            let (first, rest) = t.split_once('\n').unwrap();
            let mut record: serde_json::Value = serde_json::from_str(first).unwrap();
            change(&mut record);
            format!("{record}\n{rest}")
        });
        reseal(copy);
    };
    caught(
        &path,
        "prompt hash",
        "prompts.jsonl 0/prompt_hash",
        |copy| {
            change(copy, &|r| r["prompt_hash"] = "00".repeat(32).into());
        },
    );
    caught(&path, "prompt ids", "prompts.jsonl 0/prompt_hash", |copy| {
        change(copy, &|r| {
            let said = r["tokens"]["body"]
                .as_str()
                .unwrap()
                .replace("100,", "101,");
            r["tokens"]["body"] = said.into();
        });
    });
    caught(
        &path,
        "prompt of another body",
        "prompts.jsonl 0/body",
        |copy| {
            change(copy, &|r| r["body"] = "two.json".into());
        },
    );
    // Ids and hash made to agree: the identity that was published no longer follows.
    caught(
        &path,
        "prompt and its hash",
        "figures.json identity",
        |copy| {
            change(copy, &|r| {
                let mut record: palindrome_harness::replay::PromptRecord =
                    serde_json::from_value(r.clone()).unwrap();
                record.tokens.as_mut().unwrap().body = r#"{"tokens":[1]}"#.into();
                let hash = record.recompute().prompt_hash.unwrap();
                r["tokens"]["body"] = r#"{"tokens":[1]}"#.into();
                r["prompt_tokens"] = 1.into();
                r["prompt_hash"] = hash.into();
            });
        },
    );
    caught(&path, "prompts removed", "figures.json identity", |copy| {
        fs::remove_file(copy.join(file)).unwrap();
        reseal(copy);
    });
}

#[test]
fn bodies_in_another_order_and_a_declared_cold_cache_are_caught() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true]);
    caught(
        &path,
        "bodies swapped in the study",
        "plan.json bodies",
        |copy| {
            let before = hash_file(&copy.join("study.toml")).unwrap();
            edit(copy, "study.toml", |t| {
                t.replace("\"one.json\", \"two.json\"", "\"two.json\", \"one.json\"")
            });
            let after = hash_file(&copy.join("study.toml")).unwrap();
            edit(copy, "plan.json", |t| t.replace(&before, &after));
            reseal(copy);
        },
    );
    caught(
        &path,
        "cached",
        "requests.jsonl 1/cached_tokens: 7 prompt tokens",
        |copy| {
            let folder = copy.join("sessions/02-B");
            let stream = folder.join("streams/001.sse.zst");
            let body = zstd::decode_all(fs::read(&stream).unwrap().as_slice()).unwrap();
            let text = String::from_utf8(body).unwrap();
            let text = text.replace("\"cache_n\":0", "\"cache_n\":7");
            fs::write(&stream, zstd::encode_all(text.as_bytes(), 3).unwrap()).unwrap();
            edit(copy, "sessions/02-B/requests.jsonl", |t| {
                let (first, second) = t.split_once('\n').unwrap();
                let second = second
                    .replace("\"cached_tokens\":0", "\"cached_tokens\":7")
                    .replace("\"cache_n\":0", "\"cache_n\":7");
                format!("{first}\n{second}")
            });
            reseal(copy);
        },
    );
}
