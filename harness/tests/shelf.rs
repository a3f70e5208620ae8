//! Archives as they are kept: listed, shown, compared, packed, signed, indexed, described.

mod archive_fixture;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use archive_fixture::forge::{edit, reseal};
use archive_fixture::{copy, create, sealed};
use palindrome_harness::archive::{
    Archive, PublicKey, SecretKey, check_signature, generate_keys, list_files, sign_file,
};
use palindrome_harness::audit::{audit, audit_with};
use palindrome_harness::shelf::{
    PackError, State, add, check, diff, list, pack, show, unpack, withdraw,
};

fn palindrome(args: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_palindrome"))
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn printed(args: &[&str], folder: &Path) -> String {
    let out = palindrome(args, folder);
    let said = String::from_utf8(out.stdout).unwrap();
    let failed = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{args:?}: {said}{failed}");
    said
}

fn same_files(a: &Path, b: &Path) {
    let files = list_files(a).unwrap();
    assert_eq!(files, list_files(b).unwrap());
    for file in files {
        let (x, y) = (
            fs::read(a.join(&file)).unwrap(),
            fs::read(b.join(&file)).unwrap(),
        );
        assert_eq!(x, y, "{file}");
    }
}

#[test]
fn a_packed_archive_comes_back_bit_for_bit_and_packs_to_the_same_bytes() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true]);
    let at = |name: &str| root.path().join(name);
    let (one, two) = (at("one.tar.zst"), at("two.tar.zst"));
    pack(&Archive::open(&path).unwrap(), &one).unwrap();
    let back = unpack(&one, &at("elsewhere")).unwrap();
    same_files(&path, &back);
    assert_eq!(audit(&back).unwrap().mismatches, []);
    pack(&Archive::open(&back).unwrap(), &two).unwrap();
    assert_eq!(fs::read(&one).unwrap(), fs::read(&two).unwrap());
    // Nothing is replaced, and nothing half done is left.
    let again = unpack(&one, &at("elsewhere")).unwrap_err();
    assert!(matches!(again, PackError::Exists(_)), "{again}");
    let again = pack(&Archive::open(&path).unwrap(), &one).unwrap_err();
    assert!(matches!(again, PackError::Exists(_)), "{again}");
    assert_eq!(fs::read_dir(at("elsewhere")).unwrap().count(), 1);
}

#[test]
fn a_packed_archive_that_was_changed_or_cut_is_refused_or_fails_the_audit() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true]);
    let file = root.path().join("packed.tar.zst");
    pack(&Archive::open(&path).unwrap(), &file).unwrap();
    let whole = fs::read(&file).unwrap();
    let mut refused = 0;
    for i in 0..40 {
        let mut bytes = whole.clone();
        if i % 2 == 0 {
            bytes.truncate(whole.len() * i / 40);
        } else {
            bytes[whole.len() * i / 40] ^= 0x10;
        }
        fs::write(&file, bytes).unwrap();
        let out = root.path().join(format!("out{i}"));
        match unpack(&file, &out) {
            Err(error) => {
                assert!(
                    error
                        .to_string()
                        .contains("packed.tar.zst is no packed archive"),
                    "{error}"
                );
                assert_eq!(fs::read_dir(&out).unwrap().count(), 0, "{error}");
                refused += 1;
            }
            // zstd has bits that mean nothing: then nothing changed.
            Ok(back) => same_files(&path, &back),
        }
    }
    assert!(refused >= 35, "{refused}");
}

/// An entry's kind, name, and content or target.
type Entry<'a> = (tar::EntryType, &'a str, &'a str);

/// A packed file of entries as a malicious one may have them.
fn crafted(path: &Path, entries: &[Entry]) {
    let mut tar = tar::Builder::new(Vec::new());
    for (kind, name, content) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_mode(0o644);
        // Past the checks of the library's own setter.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        let content = if *kind == tar::EntryType::Regular {
            content.as_bytes()
        } else {
            header.as_old_mut().linkname[..content.len()].copy_from_slice(content.as_bytes());
            b""
        };
        header.set_size(content.len() as u64);
        header.set_cksum();
        tar.append(&header, content).unwrap();
    }
    let bytes = tar.into_inner().unwrap();
    let mut file = fs::File::create(path).unwrap();
    file.write_all(&zstd::encode_all(bytes.as_slice(), 1).unwrap())
        .unwrap();
}

#[test]
fn unpacking_writes_nowhere_else_and_makes_no_links() {
    use tar::EntryType::{Block, Directory, Link, Regular, Symlink};
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("bad.tar.zst");
    let cases: [(&[Entry], &str); 9] = [
        (
            &[(Regular, "../evil", "x")],
            "its name is not that of a file",
        ),
        (
            &[(Regular, "a/../../evil", "x")],
            "its name is not that of a file",
        ),
        (
            &[(Regular, "/tmp/evil", "x")],
            "its name is not that of a file",
        ),
        (
            &[(Regular, ".a/plan.json", "x")],
            "its name is not that of a file",
        ),
        (
            &[(Symlink, "a/plan.json", "/etc/passwd")],
            "it is no plain file",
        ),
        (&[(Link, "a/plan.json", "a/other")], "it is no plain file"),
        (&[(Directory, "a/", "")], "it is no plain file"),
        (
            &[(Regular, "a/x", "1"), (Regular, "b/x", "2")],
            "it lies in another folder",
        ),
        (
            &[(Regular, "a/x", "1"), (Regular, "a/x", "2")],
            "it is there twice",
        ),
    ];
    for (entries, says) in cases {
        crafted(&file, entries);
        let into = root.path().join("into");
        let error = unpack(&file, &into).unwrap_err().to_string();
        assert!(error.contains(says), "{entries:?}: {error}");
        assert_eq!(fs::read_dir(&into).unwrap().count(), 0, "{entries:?}");
    }
    crafted(&file, &[(Block, "a/x", "")]);
    assert!(unpack(&file, &root.path().join("into")).is_err());
    crafted(&file, &[]);
    assert!(unpack(&file, &root.path().join("into")).is_err());
    assert!(!root.path().join("evil").exists());
    // A folder of that name is there already.
    fs::create_dir_all(root.path().join("into/a")).unwrap();
    crafted(&file, &[(Regular, "a/x", "1")]);
    let error = unpack(&file, &root.path().join("into")).unwrap_err();
    assert!(matches!(error, PackError::Exists(_)), "{error}");
    assert_eq!(fs::read_dir(root.path().join("into/a")).unwrap().count(), 0);
}

#[test]
fn a_folder_is_listed_with_what_is_sealed_unfinished_and_broken() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("archives");
    let good = sealed(&folder, &[true]);
    let unfinished = create(&folder, &[true]).path().to_path_buf();
    let broken = folder.join("z-broken");
    copy(&good, &broken);
    edit(&broken, "manifest.json", |t| {
        t.replacen("fixture", "fixturf", 1)
    });
    let unreadable = folder.join("z-unreadable");
    fs::create_dir(&unreadable).unwrap();
    fs::write(unreadable.join("plan.json"), "{").unwrap();
    fs::create_dir(folder.join("no-archive")).unwrap();
    let listed = list(&folder).unwrap();
    assert_eq!(listed.len(), 4);
    let of = |path: &Path| {
        let name = path.file_name().unwrap().to_string_lossy();
        listed.iter().find(|l| l.id == name).unwrap()
    };
    let entry = of(&good);
    assert_eq!(entry.state, State::Sealed);
    assert_eq!(entry.study.as_deref(), Some("fixture"));
    assert_eq!(entry.arms, ["A", "B"]);
    assert_eq!(entry.utc.as_deref(), Some("2026-11-30T07:00:00Z"));
    assert!(
        entry
            .verdict
            .as_ref()
            .unwrap()
            .contains("B generated tokens at")
    );
    let (recorded, planned) = (0, 5);
    assert_eq!(
        of(&unfinished).state,
        State::Unfinished { recorded, planned }
    );
    assert!(matches!(of(&broken).state, State::Broken { .. }));
    assert!(matches!(of(&unreadable).state, State::Unreadable { .. }));
    let said = printed(&["archive", "ls", "archives"], root.path());
    assert!(
        said.contains("unfinished: 0 of 5 sessions") && said.contains("BROKEN"),
        "{said}"
    );
    assert_eq!(
        printed(&["archive", "ls", "archives", "--json"], root.path())
            .lines()
            .count(),
        4
    );
}

#[test]
fn an_archive_is_shown_and_compared() {
    let root = tempfile::tempdir().unwrap();
    let (one, two) = (sealed(root.path(), &[true]), sealed(root.path(), &[false]));
    let shown = show(&Archive::open(&one).unwrap()).unwrap();
    assert_eq!(
        (shown.sessions.len(), shown.quartets, shown.bodies),
        (5, 1, 2)
    );
    assert_eq!(shown.sessions[1].tokens, Some(11));
    assert_eq!(shown.files, list_files(&one).unwrap().len());
    assert!(shown.figures["MEASURED"] > 0 && shown.figures["CALCULATED"] > 0);
    let said = shown.to_string();
    for part in [
        "state      sealed",
        "session    02-B: 2 requests, 11 tokens",
        "verdict    On this host",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let (a, b) = (Archive::open(&one).unwrap(), Archive::open(&two).unwrap());
    let none = diff(&a, &a).unwrap();
    assert!(
        none.sections
            .iter()
            .all(|s| s.differ.is_empty() && s.name != "none")
    );
    let found = diff(&a, &b).unwrap();
    let fields = |name: &str| -> Vec<&str> {
        let section = found.sections.iter().find(|s| s.name == name).unwrap();
        section.differ.iter().map(|d| d.field.as_str()).collect()
    };
    assert_eq!(fields("study"), ["coins/0", "seed", "sha256"]);
    assert_eq!(fields("protocol"), Vec::<&str>::new());
    assert_eq!(fields("arm A"), Vec::<&str>::new());
    assert!(fields("figures").contains(&"session/02-B/decode_rate"));
    let said = found.lines(false).to_string();
    assert!(
        said.contains("study: 3 of ") && said.contains("host: the same ("),
        "{said}"
    );
    assert!(said.lines().count() < found.lines(true).to_string().lines().count());
}

#[test]
fn a_shell_checks_an_archive_without_this_program() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true]);
    let sums = |args: &[&str]| {
        let mut command = Command::new("sha256sum");
        command
            .args(args)
            .current_dir(&path)
            .output()
            .unwrap()
            .status
            .success()
    };
    assert!(sums(&["-c", "--strict", "SHA256SUMS"]) && sums(&["-c", "SEAL"]));
    let listed = fs::read_to_string(path.join("SHA256SUMS"))
        .unwrap()
        .lines()
        .count();
    // All but the sums themselves and the seal, which is over the manifest.
    assert_eq!(listed, list_files(&path).unwrap().len() - 2);
    edit(&path, "sessions/02-B/server.log", |t| {
        t.replace("8080", "8081")
    });
    assert!(!sums(&["-c", "--strict", "SHA256SUMS"]));
    reseal(&path);
    assert!(sums(&["-c", "--strict", "SHA256SUMS"]));
    edit(&path, "SHA256SUMS", str::to_uppercase);
    let found = audit(&path).unwrap().mismatches;
    assert_eq!(
        found[0].to_string(),
        "SHA256SUMS line 1: is not what manifest.json gives"
    );
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden/minisign")
        .join(name)
}

#[test]
fn what_minisign_signed_is_verified_and_its_key_signs() {
    // Made by minisign 0.11 with `-G -W` and `-S`.
    let key = PublicKey::read(golden("minisign.pub").to_str().unwrap()).unwrap();
    assert_eq!(key.id(), "BF15C6DC21EC0094");
    let file = golden("signed.json");
    let signed = check_signature(&file, Some(&key)).unwrap().unwrap();
    assert_eq!((signed.holds, signed.vouched), (Some(true), true));
    assert_eq!(signed.comment, "made by minisign 0.11");
    // It does not carry its key, so nothing is known without it.
    let signed = check_signature(&file, None).unwrap().unwrap();
    assert_eq!(signed.holds, None);
    // Its secret key signs here too, and its public key as text verifies.
    let root = tempfile::tempdir().unwrap();
    let secret = SecretKey::read(&golden("minisign.key"), || unreachable!("no password")).unwrap();
    let copy = root.path().join("signed.json");
    fs::copy(&file, &copy).unwrap();
    sign_file(&copy, &secret).unwrap();
    let key = PublicKey::read(&key.text()).unwrap();
    assert_eq!(
        check_signature(&copy, Some(&key)).unwrap().unwrap().holds,
        Some(true)
    );
    fs::write(&copy, "{\"a\": 2}\n").unwrap();
    assert!(check_signature(&copy, Some(&key)).is_err());
}

#[test]
fn keys_have_a_password_unless_asked_otherwise_and_are_never_replaced() {
    let root = tempfile::tempdir().unwrap();
    let password = "correct horse".to_owned();
    let (secret, _, public) = generate_keys(root.path(), Some(password.clone())).unwrap();
    assert!(
        generate_keys(root.path(), None)
            .unwrap_err()
            .to_string()
            .contains("is there already")
    );
    let mode = {
        use std::os::unix::fs::PermissionsExt;
        fs::metadata(&secret).unwrap().permissions().mode()
    };
    assert_eq!(mode & 0o777, 0o600);
    let wrong = SecretKey::read(&secret, || Ok("another".into()));
    assert!(wrong.is_err_and(|e| e.to_string().contains("Wrong password")));
    let key = SecretKey::read(&secret, || Ok(password)).unwrap();
    assert_eq!(key.public().unwrap().id(), public.id());
    fs::write(root.path().join("no.key"), "hello\nthere\n").unwrap();
    let none = SecretKey::read(&root.path().join("no.key"), || unreachable!());
    assert!(none.is_err_and(|e| {
        e.to_string()
            .contains("no.key is no secret key of minisign")
    }));
}

#[test]
fn the_commands_make_keys_sign_and_audit() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true]);
    let archive = path.to_str().unwrap();
    let here = root.path();
    let said = printed(&["keygen", "--no-password", "--out", "keys"], here);
    assert!(said.contains("keys/palindrome.key  signs"), "{said}");
    // Not signed: whoever asks for a signature is told.
    let audited = |args: &[&str]| palindrome(&[&["audit", archive], args].concat(), here);
    let out = audited(&["--key", "keys/palindrome.pub"]);
    assert_eq!(out.status.code(), Some(104));
    let said = String::from_utf8(out.stdout).unwrap();
    assert!(
        said.contains("MISMATCH manifest.json.minisig: is missing: the archive is not signed"),
        "{said}"
    );
    printed(
        &["archive", "sign", archive, "--key", "keys/palindrome.key"],
        here,
    );
    let said = String::from_utf8(audited(&["--key", "keys/palindrome.pub"]).stdout).unwrap();
    assert!(
        said.contains("signed by the key given (") && said.contains("everything holds"),
        "{said}"
    );
    let said = String::from_utf8(audited(&[]).stdout).unwrap();
    assert!(
        said.contains("that it is the one you know is checked with `--key`"),
        "{said}"
    );
    // A signed archive is packed and unpacked with its signature.
    printed(&["archive", "pack", archive, "-o", "a.tar.zst"], here);
    let back = printed(&["archive", "unpack", "a.tar.zst", "-o", "back"], here);
    let key = PublicKey::read(here.join("keys/palindrome.pub").to_str().unwrap()).unwrap();
    let back = here.join(back.trim());
    assert_eq!(audit_with(&back, Some(&key)).unwrap().mismatches, []);
    // What is not sealed is not signed.
    fs::remove_file(back.join("SEAL")).unwrap();
    let args = [
        "archive",
        "sign",
        back.to_str().unwrap(),
        "--key",
        "keys/palindrome.key",
    ];
    assert_eq!(palindrome(&args, here).status.code(), Some(2));
}

#[test]
fn an_index_shows_what_was_removed_or_replaced() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path();
    let (one, two) = (sealed(folder, &[true]), sealed(folder, &[false]));
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let (first, added) = add(folder, &[name(&one)]).unwrap();
    assert_eq!(added, [name(&one)]);
    let (_, found, others) = check(folder, None).unwrap();
    assert_eq!((found, others), (vec![], vec![name(&two)]));
    let (index, added) = add(folder, &[]).unwrap();
    assert_eq!((added, index.entries.len()), (vec![name(&two)], 2));
    assert_ne!(index.head, first.head);
    assert_eq!(index.entries[1].previous, first.head);
    let said = || -> Vec<String> {
        let found = check(folder, None).unwrap().1;
        found.iter().map(ToString::to_string).collect()
    };
    assert_eq!(said(), Vec::<String>::new());
    // Replaced by one that holds in itself.
    let kept = folder.join("kept");
    fs::rename(&one, &kept).unwrap();
    copy(&two, &one);
    assert!(said()[0].starts_with(&format!("{}/manifest.json sha256: found", name(&one))));
    fs::remove_dir_all(&one).unwrap();
    let gone = format!(
        "{}/manifest.json: is missing: index.json keeps this archive",
        name(&one)
    );
    assert_eq!(said(), [gone]);
    assert!(
        add(folder, &[])
            .unwrap_err()
            .to_string()
            .contains("does not hold")
    );
    // Taken back openly.
    withdraw(folder, &name(&one), "its clock was wrong").unwrap();
    assert_eq!(said(), Vec::<String>::new());
    fs::rename(&kept, &one).unwrap();
    let (index, found, others) = check(folder, None).unwrap();
    assert_eq!(
        (found, others, index.entries.len()),
        (vec![], vec![name(&one)], 3)
    );
    // Every entry and every byte counts.
    let file = folder.join("index.json");
    let whole = fs::read_to_string(&file).unwrap();
    let mut document: serde_json::Value = serde_json::from_str(&whole).unwrap();
    document["entries"].as_array_mut().unwrap().remove(0);
    fs::write(&file, format!("{document:#}\n")).unwrap();
    assert!(said().contains(&"index.json entry 0 seq: found 1, expected 0".to_owned()));
    let edits = [
        (whole.replace("its clock", "the clock"), "index.json head"),
        (
            whole.replacen(": 1,", ":  1,", 1),
            "index.json: is not written as palindrome writes it",
        ),
        (
            whole.replacen(&name(&two), "another", 1),
            "index.json entry 2 previous",
        ),
    ];
    for (edited, says) in edits {
        assert_ne!(edited, whole);
        fs::write(&file, edited).unwrap();
        assert!(
            said().iter().any(|s| s.starts_with(says)),
            "{says}: {:?}",
            said()
        );
    }
    fs::write(&file, &whole).unwrap();
    // Signed, a chain made anew shows too.
    let here = root.path();
    let keys = here.join("keys");
    let (secret, public, _) = generate_keys(&keys, None).unwrap();
    let (secret, public) = (secret.to_str().unwrap(), public.to_str().unwrap());
    printed(
        &["archive", "index", "--folder", ".", "--sign", secret],
        here,
    );
    printed(
        &[
            "archive", "index", "--folder", ".", "--check", "--key", public,
        ],
        here,
    );
    let whole = fs::read_to_string(&file).unwrap();
    fs::remove_file(&file).unwrap();
    printed(&["archive", "index", "--folder", "."], here);
    assert_ne!(fs::read_to_string(&file).unwrap(), whole);
    let out = palindrome(
        &[
            "archive", "index", "--folder", ".", "--check", "--key", public,
        ],
        here,
    );
    assert_eq!(out.status.code(), Some(104));
    assert!(String::from_utf8_lossy(&out.stdout).contains("MISMATCH index.json.minisig signature"));
}

#[test]
fn an_ro_crate_describes_every_file_and_lies_beside_the_archive() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true]);
    let args = ["archive", "ro-crate", path.to_str().unwrap()];
    let file = root.path().join(printed(&args, root.path()).trim());
    let crated: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(crated["@context"], "https://w3id.org/ro/crate/1.2/context");
    let graph = crated["@graph"].as_array().unwrap();
    let ids: Vec<&str> = graph.iter().map(|e| e["@id"].as_str().unwrap()).collect();
    assert_eq!(ids[0], "ro-crate-metadata.json");
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(file.ends_with(format!("{name}-ro-crate-metadata.json")));
    // What is linked is described, and every file that is described is there.
    let parts = graph[1]["hasPart"].as_array().unwrap();
    assert_eq!(parts.len(), list_files(&path).unwrap().len() - 2);
    for part in parts {
        let id = part["@id"].as_str().unwrap();
        assert!(ids.contains(&id) && root.path().join(id).is_file(), "{id}");
    }
    assert_eq!(audit(&path).unwrap().mismatches, []);
}
