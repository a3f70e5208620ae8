//! Planted truths with the real engine: what its debug build is told to be slower by is found, in
//! size and sign, and only there. All arms are held to a steady pace (so long from token to token and
//! to the first one, at least), so that what else the machine does shows through little.

use std::path::Path;

use palindrome_harness::archive::{Archive, Facts};
use palindrome_harness::derive::{Figures, derive};

use crate::support::{Room, engine, model};

const PACE: &str = "decode_floor_ms=30,first_floor_ms=100";
const SLOWER_DECODE: &str = "decode_floor_ms=31.5,first_floor_ms=100";
const LATER_FIRST: &str = "decode_floor_ms=30,first_floor_ms=100,first_ms=20";

fn run(room: &Room) -> Facts {
    for (name, ask) in [
        ("1", "def add(a, b):"),
        ("2", "class Shelf:"),
        ("3", "import json"),
    ] {
        let body = serde_json::json!({
            "prompt": ask, "n_predict": 12, "ignore_eos": true, "stream": true, "return_tokens": true,
            "temperature": 0.0, "seed": 1, "cache_prompt": false,
        });
        room.write(&format!("{name}.json"), &body.to_string());
    }
    let arm = |name: &str, planted: &str| {
        format!(
            "[[arm]]\nname = \"{name}\"\nkind = \"palindrome-engine\"\nprogram = {:?}\n\
             env = {{ PALINDROME_PLANTED = \"{planted}\" }}\n",
            engine().display().to_string()
        )
    };
    room.write(
        "study.toml",
        &format!(
            "name = \"planted\"\nidentity = \"exact\"\nburn_in = false\n[base]\nmodel = {:?}\nthreads = 1\nctx = 512\n\
             {}{}{}[workload]\npath = \"/completion\"\nbodies = [\"1.json\", \"2.json\", \"3.json\"]\n\
             [guards]\nallow_other_servers = true\n",
            model().display().to_string(),
            arm("plain", PACE),
            arm("slower", SLOWER_DECODE),
            arm("later", LATER_FIRST),
        ),
    );
    let ran = room.run(&["run", "study.toml"]).expect(0);
    let archive = room.archive();
    room.run(&["audit", &archive.display().to_string()])
        .expect(0);
    assert!(ran.out.contains("archive: "), "{}", ran.out);
    facts(&archive)
}

fn facts(archive: &Path) -> Facts {
    Archive::open(archive)
        .and_then(|archive| archive.facts())
        .expect("an archive")
}

/// The ratio of a metric over the plain arm, and its interval.
#[track_caller]
fn ratio(figures: &Figures, arm: &str, metric: &str) -> (f64, f64, f64) {
    let of = |name: &str| {
        let id = format!("compare/{arm}-over-plain/{metric}/{name}");
        figures.value(&id).unwrap_or_else(|| panic!("no {id}"))
    };
    (of("ratio"), of("ratio_low"), of("ratio_high"))
}

/// Found: near the truth, whose own place the interval (three times as wide, so that this holds 999
/// times in 1000) contains.
#[track_caller]
fn near((ratio, low, high): (f64, f64, f64), truth: f64) {
    assert!((ratio - truth).abs() < 0.02, "{ratio} is not near {truth}");
    let (low, high) = (
        ratio.ln() - 3.1 * (ratio / low).ln(),
        ratio.ln() + 3.1 * (high / ratio).ln(),
    );
    assert!(
        low < truth.ln() && truth.ln() < high,
        "{low} {high} {truth}"
    );
}

#[test]
fn what_is_planted_in_the_engine_is_found_and_nothing_else_is() {
    let room = Room::new();
    let facts = run(&room);
    let figures = derive(&facts);

    let decode = ratio(&figures, "slower", "decode_rate");
    near(decode, 1.0 / 1.05);
    assert!(decode.2 < 1.0, "5% slower decode is not shown: {decode:?}");
    let first = ratio(&figures, "later", "ttft");
    assert!(
        first.1 > 1.05,
        "20 ms to the first token are not shown: {first:?}"
    );
    let later = figures.value("arm/later/ttft").expect("a time")
        - figures.value("arm/plain/ttft").expect("a time");
    assert!((later - 0.02).abs() < 0.01, "{later} s later");

    // Where an arm is as the plain one, nothing is found.
    near(ratio(&figures, "slower", "ttft"), 1.0);
    near(ratio(&figures, "later", "decode_rate"), 1.0);

    // Swapped labels flip the sign and nothing else.
    let mut swapped = facts;
    let swap = |arm: &mut String| match arm.as_str() {
        "plain" => *arm = "slower".into(),
        "slower" => *arm = "plain".into(),
        _ => {}
    };
    swapped
        .plan
        .sessions
        .iter_mut()
        .for_each(|s| swap(&mut s.arm));
    for session in &mut swapped.sessions {
        swap(&mut session.planned.arm);
        swap(&mut session.launch.arm);
    }
    let other = ratio(&derive(&swapped), "slower", "decode_rate");
    for (here, there) in [
        (decode.0, other.0),
        (decode.1, other.2),
        (decode.2, other.1),
    ] {
        assert!((here * there - 1.0).abs() < 1e-9, "{here} {there}");
    }
}
