//! What a forger can do who makes everything anew, and nothing in the archive contradicts: the audit
//! passes it, as `docs/archive.md` says. A signature and an index show it.

use std::fs;

use palindrome_harness::archive::{
    Archive, PublicKey, SecretKey, check_signature, generate_keys, session_folder_name,
    sign_archive,
};
use palindrome_harness::derive::derive;
use palindrome_harness::shelf;
use serde_json::Value;

use super::forge::{document, reseal, text, value};
use super::sample::{Files, Random, Sample, fresh};

/// A forgery: its name, and what it does.
type Forgery = (&'static str, fn(&Sample, &mut Random) -> Files);

const FORGERIES: [Forgery; 5] = [
    ("another machine", |sample, random| {
        let mut files = sample.files.clone();
        let model = format!("Faster CPU {}", random.next());
        document(&mut files, "host.json", |h| h["cpu_model"] = model.into());
        files
    }),
    ("another log", |sample, random| {
        let mut files = sample.files.clone();
        let logs = sample.ending("/server.log");
        let said = format!("all is well {}\n", random.next());
        let log = random.pick(&logs).clone();
        files.get_mut(&log).unwrap().extend(said.into_bytes());
        files
    }),
    (
        "another program, in every session of an arm",
        |sample, random| {
            let mut files = sample.files.clone();
            let arm = value(&files, "plan.json")["arms"][random.below(2)].clone();
            let hash = format!("{:064x}", random.next());
            for file in sample.ending("/launch.json") {
                if value(&files, &file)["arm"] == arm {
                    document(&mut files, &file, |l| {
                        l["binary"]["sha256"] = hash.clone().into()
                    });
                }
            }
            files
        },
    ),
    ("another end of the log", |sample, random| {
        let mut files = sample.files.clone();
        let changed = text(&files, "events.jsonl");
        let (before, last) = changed.trim_end().rsplit_once('\n').unwrap();
        let mut last: Value = serde_json::from_str(last).unwrap();
        last["utc"] = format!("2020-01-01T00:00:00.{:03}Z", random.below(1000)).into();
        files.insert(
            "events.jsonl".into(),
            format!("{before}\n{last}\n").into_bytes(),
        );
        files
    }),
    ("faster answers, from the raw times up", faster),
];

/// Raw times of one session made shorter, and everything that follows from them made anew.
fn faster(sample: &Sample, random: &mut Random) -> Files {
    let archive = sample.archive();
    let planned = &archive.plan().sessions[1 + random.below(4)];
    let name = session_folder_name(planned);
    let mut session = archive.session(planned).unwrap();
    let mut files = sample.files.clone();
    let by = 1 + random.below(900) as u64;
    let mut lines = String::new();
    for record in &mut session.requests {
        let mut raw = archive.raw(planned, &record.stream).unwrap();
        for arrival in &mut raw.arrivals {
            // Nothing that lies after it moves, so no clock runs backwards.
            arrival.ns -= (arrival.ns - raw.sent_ns) * by / 1000;
        }
        let file = format!("sessions/{name}/streams/{}.arrivals.json", record.stream);
        let mut stored = value(&files, &file);
        stored["arrivals"] = serde_json::to_value(&raw.arrivals).unwrap();
        files.insert(file, (stored.to_string() + "\n").into_bytes());
        let gaps = session.readback.is_some();
        *record = record.recompute(&raw, session.launch.kind, gaps);
    }
    let file = format!("sessions/{name}/requests.jsonl");
    for (record, line) in session.requests.iter().zip(text(&files, &file).lines()) {
        let mut stored: Value = serde_json::from_str(line).unwrap();
        let now = serde_json::to_value(record).unwrap();
        for (field, value) in now.as_object().unwrap() {
            stored[field] = value.clone();
        }
        lines += &stored.to_string();
        lines.push('\n');
    }
    files.insert(file, lines.into_bytes());
    let mut facts = archive.facts().unwrap();
    let at = facts
        .sessions
        .iter()
        .position(|s| s.planned == *planned)
        .unwrap();
    facts.sessions[at] = session;
    let figures = serde_json::to_value(derive(&facts)).unwrap();
    document(&mut files, "figures.json", |d| *d = figures);
    files
}

fn signed(sample: &mut Sample) -> PublicKey {
    let keys = tempfile::tempdir().unwrap();
    let (secret, public, _) = generate_keys(keys.path(), None).unwrap();
    let secret = SecretKey::read(&secret, || unreachable!("it has no password")).unwrap();
    let file = sign_archive(&sample.path, &secret).unwrap();
    let name = file.file_name().unwrap().to_string_lossy().into_owned();
    sample.files.insert(name, fs::read(&file).unwrap());
    PublicKey::read(public.to_str().unwrap()).unwrap()
}

#[test]
fn what_only_a_signature_or_an_index_shows() {
    let mut sample = fresh();
    let folder = sample.path.parent().unwrap().to_path_buf();
    let unsigned = sample.files.clone();
    shelf::add(&folder, &[]).unwrap();
    let key = signed(&mut sample);
    assert_eq!(sample.audit(&sample.files, Some(&key)), []);
    assert_eq!(shelf::check(&folder, None).unwrap().1, []);
    let mut random = Random(17);
    let mut tried = 0;
    for (what, forge) in FORGERIES {
        for _ in 0..8 {
            let mut files = forge(&sample, &mut random);
            reseal(&mut files);
            assert_ne!(files, sample.files, "{what}");
            // With the old signature, whoever has the key sees it; and so does whoever has not,
            // because the signature carries its key.
            for known in [Some(&key), None] {
                let found = sample.audit(&files, known);
                let says = "manifest.json.minisig signature: ";
                assert!(
                    found.iter().any(|m| m.to_string().starts_with(says)) && found.len() == 1,
                    "{what}: {found:?}"
                );
            }
            // Without the signature, whoever has the key or the index sees it, and nobody else.
            files.remove("manifest.json.minisig");
            let found = sample.audit(&files, Some(&key));
            assert_eq!(found.len(), 1, "{what}: {found:?}");
            assert_eq!(
                found[0].to_string(),
                "manifest.json.minisig: is missing: the archive is not signed"
            );
            assert_eq!(sample.audit(&files, None), [], "{what}");
            let indexed = sample.indexed(&files, &folder);
            assert!(
                indexed.starts_with(&format!("{}/manifest.json sha256: found", sample.name)),
                "{what}: {indexed}"
            );
            tried += 2;
        }
    }
    println!("{tried} forgeries, all shown by the signature or the index");
    assert!(tried >= 80);
    assert_eq!(sample.audit(&unsigned, None), []);
}

impl Sample {
    /// What a check of the folder's index says of a forgery.
    fn indexed(&self, files: &Files, folder: &std::path::Path) -> String {
        self.with(files, || {
            let found = shelf::check(folder, None).unwrap().1;
            found
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("\n")
        })
    }
}

#[test]
fn every_byte_of_a_signature_counts() {
    let mut sample = fresh();
    let key = signed(&mut sample);
    let file = "manifest.json.minisig";
    let mut random = Random(19);
    let length = sample.files[file].len();
    for _ in 0..60 {
        let (at, bit) = (random.below(length), 1_u8 << random.below(8));
        let mut files = sample.files.clone();
        files.get_mut(file).unwrap()[at] ^= bit;
        for known in [Some(&key), None] {
            let found = sample.audit(&files, known);
            let named = found.iter().any(|m| m.file == file);
            assert!(named, "byte {at} xor {bit}, key given: {}", known.is_some());
        }
    }
    // Another's signature is not the one that was asked for.
    let mut other = fresh();
    let another = signed(&mut other);
    let found = sample.audit(&sample.files, Some(&another));
    assert!(
        found[0].to_string().contains("minisig key: found"),
        "{found:?}"
    );
    let seen = check_signature(&sample.path.join("manifest.json"), None)
        .unwrap()
        .unwrap();
    assert_eq!(
        (seen.key, seen.holds, seen.vouched),
        (key.id(), Some(true), false)
    );
    assert!(Archive::open(&sample.path).unwrap().is_sealed());
}
