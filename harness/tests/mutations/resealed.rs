//! Edits of facts, figures and words by a forger who makes every hash match again: what no longer
//! follows from the raw streams is caught all the same.

use serde_json::{Value, json};

use super::forge::{document, line, rechain, reseal, reseal_manifest, seal, text, value};
use super::sample::{Files, Mutation, Random, Sample};

/// What a mismatch says of it, and an edit of a document.
type Edit = (&'static str, fn(&mut Value));

/// One bit more.
fn nudged(value: &Value) -> Value {
    f64::from_bits(value.as_f64().unwrap().to_bits() + 1).into()
}

/// A published figure: its value, unit, label, formula, inputs, name or place.
fn figure(sample: &Sample, random: &mut Random) -> Mutation {
    let mut files = sample.files.clone();
    let figures = value(&files, "figures.json")["figures"].clone();
    let figures = figures.as_array().unwrap();
    let kind = random.below(9);
    let at = loop {
        let at = random.below(figures.len());
        // Values that are there, and not 0, so that each edit changes them.
        if figures[at]["value"].as_f64().is_some_and(|v| v != 0.0) {
            break at;
        }
    };
    let id = figures[at]["id"].as_str().unwrap().to_owned();
    let other = |now: &Value, of: [&str; 2]| -> Value {
        let next = if *now == of[0] { of[1] } else { of[0] };
        next.into()
    };
    let mut field = "";
    document(&mut files, "figures.json", |document| {
        let all = document["figures"].as_array_mut().unwrap();
        let figure = &mut all[at];
        match kind {
            0 => {
                field = "value";
                figure["value"] = nudged(&figure["value"]);
            }
            1 => {
                field = "label";
                figure["label"] = other(&figure["label"], ["MEASURED", "CALCULATED"]);
            }
            2 => {
                field = "unit";
                figure["unit"] = other(&figure["unit"], ["seconds", "milliseconds"]);
            }
            3 => {
                field = "value";
                figure["value"] = (figure["value"].as_f64().unwrap() * 1000.0).into();
            }
            4 => {
                field = "formula";
                figure["formula"] = "guess".into();
            }
            5 => {
                field = "inputs";
                figure["inputs"] = json!(["nothing"]);
            }
            6 => figure["id"] = format!("{id}_better").into(),
            7 => drop(all.remove(at)),
            _ => {
                let twice = all[at].clone();
                all.push(twice);
            }
        }
    });
    reseal_manifest(&mut files);
    let says = match kind {
        6 | 7 => format!("figures.json {id}: is missing"),
        8 => format!("figures.json {id}: is there twice"),
        _ => format!("figures.json {id} {field}: found"),
    };
    Mutation {
        what: format!("figure {id}, edit {kind}"),
        files,
        says: vec![says],
    }
}

/// Verdict, question, comparisons, identities.
fn words(sample: &Sample, random: &mut Random) -> Mutation {
    let mut files = sample.files.clone();
    let edits: [Edit; 8] = [
        ("verdict sentence", |d| {
            let said = d["verdict"]["sentence"].as_str().unwrap();
            d["verdict"]["sentence"] = format!("{said} It is certain.").into();
        }),
        ("verdict does_not_follow", |d| {
            d["verdict"]["does_not_follow"]
                .as_array_mut()
                .unwrap()
                .remove(0);
        }),
        ("verdict warnings", |d| {
            let warnings = d["verdict"]["warnings"].as_array_mut().unwrap();
            if warnings.pop().is_none() {
                warnings.push("It rained.".into());
            }
        }),
        ("comparisons", |d| d["comparisons"][0]["pairs"] = 60.into()),
        ("comparisons", |d| {
            drop(d["comparisons"].as_array_mut().unwrap().pop())
        }),
        ("identity", |d| {
            drop(d["identity"].as_array_mut().unwrap().pop())
        }),
        ("study", |d| d["study"] = "another".into()),
        ("arms", |d| d["arms"].as_array_mut().unwrap().reverse()),
    ];
    let at = random.below(edits.len());
    let (field, edit) = edits[at];
    document(&mut files, "figures.json", edit);
    reseal_manifest(&mut files);
    Mutation {
        what: format!("{field} of figures.json, edit {at}"),
        files,
        says: vec![format!("figures.json {field}")],
    }
}

/// A request's record: a time, a unit, a count, a hash.
fn record(sample: &Sample, random: &mut Random) -> Mutation {
    let mut files = sample.files.clone();
    let all = sample.ending("/requests.jsonl");
    let file = random.pick(&all).clone();
    let at = random.below(text(&files, &file).lines().count());
    const TIMES: [&str; 5] = [
        "sent_ns",
        "first_byte_ns",
        "first_token_ns",
        "last_token_ns",
        "done_ns",
    ];
    const COUNTS: [&str; 2] = ["generated_tokens", "first_event_tokens"];
    const TEXTS: [&str; 3] = ["text_hash", "finish_reason", "body_sha256"];
    let kind = random.below(4);
    let field = match kind {
        0 | 1 => TIMES[random.below(TIMES.len())],
        2 => COUNTS[random.below(COUNTS.len())],
        _ => TEXTS[random.below(TEXTS.len())],
    };
    let by = 1 + random.below(1_000_000) as u64;
    line(&mut files, &file, at, |record| {
        let now = record[field].clone();
        record[field] = match kind {
            0 => (now.as_u64().unwrap_or(0) + by).into(),
            // Nanoseconds taken for microseconds.
            1 => (now.as_u64().unwrap_or(5_000) / 1000).into(),
            2 => (now.as_u64().unwrap_or(0) + 1).into(),
            _ => format!("0{}", now.as_str().unwrap_or_default()).into(),
        };
    });
    reseal(&mut files);
    Mutation {
        what: format!("{field} of line {at} of {file}, edit {kind}"),
        files,
        says: vec![format!("{file} {at}/{field}: found")],
    }
}

/// A raw stream: cut short, a token in it changed, its times shifted.
fn stream(sample: &Sample, random: &mut Random) -> Mutation {
    let mut files = sample.files.clone();
    let all = sample.ending(".sse.zst");
    let file = random.pick(&all).clone();
    let arrivals = file.replace(".sse.zst", ".arrivals.json");
    let session = file.split("/streams/").next().unwrap();
    let record = format!("{session}/requests.jsonl ");
    let mut body = zstd::decode_all(files[&file].as_slice()).unwrap();
    let kind = random.below(5);
    let says = match kind {
        // Cut, and the reads' ends left: they do not add up.
        0 => {
            body.truncate(body.len() - 1 - random.below(body.len() / 2));
            format!("{arrivals} arrivals: do not add up")
        }
        // Cut, the reads' ends made to fit: the record says more than the stream.
        1 => {
            body.truncate(body.len() / 2 - random.below(body.len() / 4));
            let length = body.len() as u64;
            edit_arrivals(&mut files, &arrivals, |all| {
                all.retain(|a| a["end"].as_u64().unwrap() < length);
                let ns = all.last().map_or(json!(0), |a| a["ns"].clone());
                all.push(json!({ "ns": ns, "end": length }));
            });
            record
        }
        // Another letter in a token's text.
        2 => {
            let at = letter(&body);
            body[at] = if body[at] == b'x' { b'y' } else { b'x' };
            record
        }
        // The end of the answer, half as late.
        3 => {
            document(&mut files, &arrivals, |raw| {
                let sent = raw["sent_ns"].as_u64().unwrap();
                let took = raw["done_ns"].as_u64().unwrap() - sent;
                raw["done_ns"] = (sent + took / 2).into();
            });
            format!("{arrivals} done_ns")
        }
        // The request sent later than it was.
        _ => {
            document(&mut files, &arrivals, |raw| {
                raw["sent_ns"] = (raw["sent_ns"].as_u64().unwrap() + 1_000).into();
            });
            record
        }
    };
    if kind > 2 {
        // These documents are lines, as the writer has them.
        let compact = value(&files, &arrivals).to_string() + "\n";
        files.insert(arrivals, compact.into_bytes());
    } else {
        files.insert(file.clone(), zstd::encode_all(body.as_slice(), 9).unwrap());
    }
    reseal(&mut files);
    Mutation {
        what: format!("{file}, edit {kind}"),
        files,
        says: vec![says],
    }
}

/// A letter or digit of some token's text.
fn letter(body: &[u8]) -> usize {
    let marks: [&[u8]; 2] = [b"content\":\"", b"\"text\":\""];
    let after = |mark: &&[u8], at: usize| body[at..].starts_with(mark).then(|| at + mark.len());
    let mut ends = (0..body.len()).filter_map(|at| marks.iter().find_map(|mark| after(mark, at)));
    ends.find(|at| body[*at].is_ascii_alphanumeric())
        .expect("an answer has words")
}

fn edit_arrivals(files: &mut Files, file: &str, change: impl FnOnce(&mut Vec<Value>)) {
    let mut raw = value(files, file);
    change(raw["arrivals"].as_array_mut().unwrap());
    files.insert(file.into(), (raw.to_string() + "\n").into_bytes());
}

/// The plan, or the study with its hash in the plan.
fn plan(sample: &Sample, random: &mut Random) -> Mutation {
    let mut files = sample.files.clone();
    let edits: [Edit; 9] = [
        ("plan.json seed", |p| {
            p["seed"] = (p["seed"].as_u64().unwrap() + 1).into()
        }),
        ("plan.json coins", |p| {
            let coin = p["coins"][0].as_bool().unwrap();
            p["coins"][0] = (!coin).into();
        }),
        ("plan.json study", |p| p["study"] = "another".into()),
        ("plan.json study_sha256", |p| {
            p["study_sha256"] = "0".repeat(64).into()
        }),
        ("plan.json arms", |p| {
            p["arms"].as_array_mut().unwrap().reverse()
        }),
        ("workload/", |p| p["bodies"][0][1] = "0".repeat(64).into()),
        ("plan.json bodies", |p| {
            p["bodies"][0][0] = "../one.json".into()
        }),
        ("plan.json sessions", |p| {
            drop(p["sessions"].as_array_mut().unwrap().pop())
        }),
        ("plan.json sessions", |p| {
            let last = p["sessions"].as_array().unwrap().len() - 1;
            p["sessions"][last]["role"] = "burn-in".into();
        }),
    ];
    let at = random.below(edits.len());
    let (says, edit) = edits[at];
    document(&mut files, "plan.json", edit);
    reseal(&mut files);
    Mutation {
        what: format!("{says}, edit {at}"),
        files,
        says: vec![says.into()],
    }
}

/// How a session was started or ended, what was seen meanwhile, what its prompts were.
fn around(sample: &Sample, random: &mut Random) -> Mutation {
    let mut files = sample.files.clone();
    let sessions = sample.sessions();
    let session = random.pick(&sessions).clone();
    let at = |file: &str| format!("sessions/{session}/{file}");
    let kind = random.below(10);
    let launches: [Edit; 6] = [
        ("arm: found", |l| l["arm"] = "another".into()),
        ("binary/sha256: found", |l| {
            l["binary"]["sha256"] = "0".repeat(64).into()
        }),
        ("command", |l| {
            l["command"].as_array_mut().unwrap().push("--fast".into())
        }),
        ("env/OMP_NUM_THREADS: found", |l| {
            l["env"]["OMP_NUM_THREADS"] = "64".into()
        }),
        ("label: found", |l| l["label"] = "another".into()),
        ("kind: found", |l| l["kind"] = "openai".into()),
    ];
    let says = match kind {
        0..=5 => {
            let (says, edit) = launches[kind];
            document(&mut files, &at("launch.json"), edit);
            // Of two sessions, which is the odd one is not known.
            format!("launch.json {says}")
        }
        6 => {
            document(&mut files, &at("end.json"), |end| {
                end["ended_ns"] = (end["started_ns"].as_u64().unwrap() + 1).into();
            });
            format!("sessions/{session} end.json ended_ns: found")
        }
        7 => {
            document(&mut files, &at("end.json"), |end| {
                let peak = &mut end["stop"]["usage"]["peak_rss_bytes"];
                *peak = (peak.as_u64().unwrap_or(0) / 2).into();
            });
            format!("figures.json session/{session}/")
        }
        8 if sample.files.contains_key(&at("readback.json")) => {
            document(&mut files, &at("readback.json"), |read| {
                let nice = &mut read["end"]["nice"];
                *nice = (nice.as_i64().unwrap_or(0) + 5).into();
            });
            "figures.json settings".into()
        }
        _ => {
            let file = at("host.jsonl");
            line(&mut files, &file, 0, |sample| {
                let load = sample["load1"].as_f64().unwrap_or(0.0);
                sample["load1"] = (load + 64.0).into();
            });
            format!("figures.json session/{session}/")
        }
    };
    reseal(&mut files);
    Mutation {
        what: format!("session {session}, edit {kind}"),
        files,
        says: vec![says],
    }
}

/// The run's log: a line dropped, moved or edited without the chain, a commit dropped with it.
fn events(sample: &Sample, random: &mut Random) -> Mutation {
    let mut files = sample.files.clone();
    let mut lines: Vec<String> = text(&files, "events.jsonl")
        .lines()
        .map(str::to_owned)
        .collect();
    let at = random.below(lines.len() - 1);
    let join = |lines: &[String]| (lines.join("\n") + "\n").into_bytes();
    let kind = random.below(4);
    let says = match kind {
        0 => {
            lines.remove(at);
            files.insert("events.jsonl".into(), join(&lines));
            format!("events.jsonl line {}: ", at + 1)
        }
        1 => {
            lines.swap(at, at + 1);
            files.insert("events.jsonl".into(), join(&lines));
            format!("events.jsonl line {}: ", at + 1)
        }
        2 => {
            lines[at] = lines[at].replacen("\"utc\":\"2", "\"utc\":\"1", 1);
            files.insert("events.jsonl".into(), join(&lines));
            format!("events.jsonl line {}: `previous` is not the hash", at + 2)
        }
        _ => {
            let committed = |l: &&String| l.contains("\"session-committed\"");
            let commits: Vec<String> = lines.iter().filter(committed).cloned().collect();
            let gone = random.pick(&commits).clone();
            lines.retain(|l| *l != gone);
            files.insert("events.jsonl".into(), join(&lines));
            rechain(&mut files);
            "no commit of this session is recorded".into()
        }
    };
    reseal_manifest(&mut files);
    Mutation {
        what: format!("events.jsonl line {at}, edit {kind}"),
        files,
        says: vec![says],
    }
}

/// The manifest itself, with a seal over it.
fn manifest(sample: &Sample, random: &mut Random) -> Mutation {
    let mut files = sample.files.clone();
    let edits: [Edit; 7] = [
        ("_type", |m| {
            m["_type"] = "https://in-toto.io/Statement/v2".into()
        }),
        ("predicateType", |m| {
            m["predicateType"] = "urn:another".into()
        }),
        ("predicate/schema", |m| {
            m["predicate"]["schema"] = "1.9".into()
        }),
        ("predicate/host/kernel", |m| {
            m["predicate"]["host"]["kernel"] = "0.1".into()
        }),
        ("predicate/verdict/sentence", |m| {
            m["predicate"]["verdict"]["sentence"] = "A won.".into()
        }),
        ("predicate/plan/seed", |m| {
            m["predicate"]["plan"]["seed"] = 99.into()
        }),
        ("subject", |m| {
            let subjects = m["subject"].as_array_mut().unwrap();
            let twice = subjects[0].clone();
            subjects.push(twice);
        }),
    ];
    let at = random.below(edits.len());
    let (field, edit) = edits[at];
    document(&mut files, "manifest.json", edit);
    seal(&mut files);
    Mutation {
        what: format!("{field} of the manifest"),
        files,
        says: vec![format!("manifest.json {field}")],
    }
}

/// Sessions dropped, swapped, or replayed as another, with the log and every hash made to match.
fn sessions(sample: &Sample, random: &mut Random) -> Mutation {
    let names = sample.sessions();
    let one = random.below(names.len());
    let other = (one + 1 + random.below(names.len() - 1)) % names.len();
    let (one, other) = (names[one].clone(), names[other].clone());
    let of = |name: &str| -> Vec<(String, Vec<u8>)> {
        let folder = format!("sessions/{name}/");
        let inside = sample.files.iter().filter(|(f, _)| f.starts_with(&folder));
        inside
            .map(|(f, bytes)| (f[folder.len()..].to_owned(), bytes.clone()))
            .collect()
    };
    let mut files = sample.files.clone();
    let kind = random.below(3);
    let mut replace = |name: &str, with: Vec<(String, Vec<u8>)>| {
        let folder = format!("sessions/{name}/");
        let planned = value(&sample.files, &format!("{folder}session.json"))["planned"].clone();
        let arm = value(&sample.files, &format!("{folder}launch.json"))["arm"].clone();
        files.retain(|f, _| !f.starts_with(&folder));
        for (file, bytes) in with {
            files.insert(format!("{folder}{file}"), bytes);
        }
        // It says of itself that it is the session that was planned here.
        let there = files.contains_key(&format!("{folder}session.json"));
        if there {
            document(&mut files, &format!("{folder}session.json"), |s| {
                s["planned"] = planned
            });
            document(&mut files, &format!("{folder}launch.json"), |l| {
                l["arm"] = arm
            });
        }
    };
    match kind {
        0 => replace(&one, Vec::new()),
        1 => {
            replace(&one, of(&other));
            replace(&other, of(&one));
        }
        _ => replace(&other, of(&one)),
    }
    reseal(&mut files);
    let says = if kind == 0 {
        vec![format!("sessions/{one}: is planned but missing")]
    } else {
        // Clocks run backwards from the session that came earlier to the one before it.
        vec!["started_ns: found".into()]
    };
    Mutation {
        what: format!("sessions {one} and {other}, edit {kind}, every hash made to match"),
        files,
        says,
    }
}

type Kind = fn(&Sample, &mut Random) -> Mutation;

#[test]
fn edits_with_every_hash_made_to_match_are_caught() {
    let kinds: [(Kind, usize, usize); 9] = [
        (figure, 110, 4),
        (words, 30, 1),
        (record, 90, 2),
        (stream, 60, 2),
        (plan, 30, 1),
        (around, 60, 2),
        (events, 40, 1),
        (manifest, 20, 1),
        (sessions, 30, 1),
    ];
    let mut random = Random(11);
    let mut tried = 0;
    for (i, sample) in Sample::all().iter().enumerate() {
        for (kind, small, large) in kinds {
            let times = if i == 0 { small } else { large };
            tried += sample.try_all((0..times).map(|_| kind(sample, &mut random)));
        }
    }
    println!("{tried} edits with every hash made to match, all caught");
    assert!(tried >= 500, "{tried}");
}
