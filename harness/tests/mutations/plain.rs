//! Edits of files, without a hash made to match.

use super::sample::{Files, Mutation, Random, Sample};

/// A file of a kind, so that large kinds do not crowd out small ones.
fn any_file(sample: &Sample, random: &mut Random) -> String {
    const KINDS: [&str; 18] = [
        "study.toml",
        "plan.json",
        "host.json",
        ".json",
        "session.json",
        "launch.json",
        "readback.json",
        "server.log",
        "requests.jsonl",
        "prompts.jsonl",
        ".arrivals.json",
        ".sse.zst",
        "host.jsonl",
        "end.json",
        "events.jsonl",
        "figures.json",
        "manifest.json",
        "SEAL",
    ];
    loop {
        let kind = if random.below(19) == 18 {
            "SHA256SUMS"
        } else {
            KINDS[random.below(KINDS.len())]
        };
        let files = sample.ending(kind);
        if !files.is_empty() {
            return random.pick(&files).clone();
        }
    }
}

/// What a mismatch about a file begins with. A plan that cannot be read says so itself; a seal or a
/// manifest that does not hold is said of either.
fn about(file: &str) -> Vec<String> {
    let mut says = vec![file.to_owned()];
    if file == "manifest.json" {
        says.push("SEAL".into());
    }
    says
}

/// One bit of one byte.
fn flipped(sample: &Sample, random: &mut Random) -> Mutation {
    let (file, at) = loop {
        let file = any_file(sample, random);
        let length = sample.files[&file].len();
        if length > 0 {
            break (file, random.below(length));
        }
    };
    let bit = 1_u8 << random.below(8);
    let mut files = sample.files.clone();
    files.get_mut(&file).unwrap()[at] ^= bit;
    Mutation {
        what: format!("byte {at} of {file} xor {bit}"),
        files,
        says: about(&file),
    }
}

/// A file cut short, made longer, emptied, or with two bytes in each other's place.
fn reshaped(sample: &Sample, random: &mut Random) -> Mutation {
    let mut files = sample.files.clone();
    let mut file = any_file(sample, random);
    while files[&file].len() < 2 {
        file = any_file(sample, random);
    }
    let bytes = files.get_mut(&file).unwrap();
    let what = match random.below(4) {
        0 => {
            bytes.truncate(random.below(bytes.len()));
            format!("{file} cut to {} bytes", bytes.len())
        }
        1 => {
            bytes.push(b'\n');
            format!("{file} longer by a line")
        }
        2 => {
            bytes.clear();
            format!("{file} emptied")
        }
        _ => {
            let at = loop {
                let at = random.below(bytes.len() - 1);
                if bytes[at] != bytes[at + 1] {
                    break at;
                }
            };
            bytes.swap(at, at + 1);
            format!("bytes {at} and {} of {file} swapped", at + 1)
        }
    };
    Mutation {
        what,
        files,
        says: about(&file),
    }
}

/// A file taken away, renamed, copied, added, or put in another's place.
fn moved(sample: &Sample, random: &mut Random) -> Mutation {
    let mut files = sample.files.clone();
    let file = any_file(sample, random);
    let (what, says) = match random.below(4) {
        0 => {
            files.remove(&file);
            (format!("{file} deleted"), about(&file))
        }
        1 => {
            let bytes = files.remove(&file).unwrap();
            let named = format!("{file}.old");
            files.insert(named.clone(), bytes);
            (
                format!("{file} renamed"),
                [about(&file), vec![named]].concat(),
            )
        }
        2 => {
            let session = format!("sessions/{}/", sample.sessions()[1]);
            let places = ["", "workload/", "sessions/", &session];
            let names = ["note.txt", ".hidden", "extra.json", "SEAL.old"];
            let named = format!("{}{}", random.pick(&places), random.pick(&names));
            files.insert(named.clone(), b"{}".to_vec());
            (format!("{named} added"), vec![named])
        }
        _ => {
            let other = loop {
                let other = any_file(sample, random);
                if files[&other] != files[&file] {
                    break other;
                }
            };
            let (a, b) = (files[&file].clone(), files[&other].clone());
            files.insert(file.clone(), b);
            files.insert(other.clone(), a);
            (
                format!("{file} and {other} swapped"),
                [about(&file), about(&other)].concat(),
            )
        }
    };
    Mutation { what, files, says }
}

/// Sessions taken away, swapped, or an old one replayed in a later one's place.
fn sessions(sample: &Sample, random: &mut Random) -> Mutation {
    let names = sample.sessions();
    let one = random.below(names.len());
    let other = (one + 1 + random.below(names.len() - 1)) % names.len();
    let (one, other) = (&names[one], &names[other]);
    let mut files = sample.files.clone();
    let taken = |files: &mut Files, name: &str| -> Files {
        let folder = format!("sessions/{name}/");
        let inside = |f: &&String| f.starts_with(&folder);
        let names: Vec<String> = files.keys().filter(inside).cloned().collect();
        let part = |f: &String| f[folder.len()..].to_owned();
        names
            .iter()
            .map(|f| (part(f), files.remove(f).unwrap()))
            .collect()
    };
    let put = |files: &mut Files, name: &str, session: &Files| {
        for (file, bytes) in session {
            files.insert(format!("sessions/{name}/{file}"), bytes.clone());
        }
    };
    let first = taken(&mut files, one);
    let what = match random.below(3) {
        0 => format!("session {one} dropped"),
        1 => {
            let second = taken(&mut files, other);
            put(&mut files, one, &second);
            put(&mut files, other, &first);
            format!("sessions {one} and {other} swapped")
        }
        _ => {
            put(&mut files, one, &first);
            taken(&mut files, other);
            put(&mut files, other, &first);
            format!("session {one} replayed as {other}")
        }
    };
    let says = [one, other].map(|name| format!("sessions/{name}"));
    Mutation {
        what,
        files,
        says: says.into(),
    }
}

/// A stream compressed again: what it unpacks to is the same, the file is not.
fn rezipped(sample: &Sample, random: &mut Random) -> Mutation {
    let streams = sample.ending(".sse.zst");
    let file = random.pick(&streams);
    let body = zstd::decode_all(sample.files[file].as_slice()).unwrap();
    let level = [1, 3, 15, 19][random.below(4)];
    let mut encoder = zstd::Encoder::new(Vec::new(), level).unwrap();
    encoder.include_checksum(true).unwrap();
    std::io::copy(&mut body.as_slice(), &mut encoder).unwrap();
    let mut files = sample.files.clone();
    files.insert(file.clone(), encoder.finish().unwrap());
    Mutation {
        what: format!("{file} compressed again at level {level}"),
        files,
        says: vec![format!("{file} sha256: found")],
    }
}

type Kind = fn(&Sample, &mut Random) -> Mutation;

#[test]
fn edits_of_files_are_caught() {
    let kinds: [(Kind, usize, usize); 5] = [
        (flipped, 220, 8),
        (reshaped, 80, 3),
        (moved, 70, 3),
        (sessions, 40, 2),
        (rezipped, 10, 1),
    ];
    let mut random = Random(5);
    let mut tried = 0;
    for (i, sample) in Sample::all().iter().enumerate() {
        for (kind, small, large) in kinds {
            let times = if i == 0 { small } else { large };
            tried += sample.try_all((0..times).map(|_| kind(sample, &mut random)));
        }
    }
    println!("{tried} edits of files, all caught");
    assert!(tried >= 450, "{tried}");
}
