//! `palindrome archive`: looking at archives, packing, signing and indexing them.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::archive_args::{
    ArchiveCommand, DiffArgs, IndexArgs, LsArgs, PackArgs, RoCrateArgs, ShowArgs, SignArgs,
    UnpackArgs,
};
use super::keys::secret_key;
use super::{Exit, Failure};
use crate::archive::{Archive, PublicKey, sign_archive, sign_file};
use crate::shelf;

/// Runs one of the commands.
pub fn archive(command: ArchiveCommand) -> Result<Exit, Failure> {
    match command {
        ArchiveCommand::Ls(args) => ls(&args),
        ArchiveCommand::Show(args) => show(&args),
        ArchiveCommand::Diff(args) => diff(&args),
        ArchiveCommand::Pack(args) => pack(args),
        ArchiveCommand::Unpack(args) => unpack(&args),
        ArchiveCommand::Sign(args) => sign(&args),
        ArchiveCommand::Index(args) => index(&args),
        ArchiveCommand::RoCrate(args) => ro_crate(&args),
    }
}

fn ls(args: &LsArgs) -> Result<Exit, Failure> {
    for listed in shelf::list(&args.folder)? {
        if args.json {
            println!("{}", json!(listed));
            continue;
        }
        println!("{}  {}", listed.id, listed.state.words());
        let utc = listed.utc.as_deref().unwrap_or("not known");
        let study = listed.study.as_deref().unwrap_or("not known");
        println!("    {utc}  {study}: {}", listed.arms.join(", "));
        if let Some(verdict) = &listed.verdict {
            println!("    {verdict}");
        }
    }
    Ok(Exit::Done)
}

fn show(args: &ShowArgs) -> Result<Exit, Failure> {
    let shown = shelf::show(&Archive::open(&args.archive)?)?;
    if args.json {
        println!("{}", json!(shown));
    } else {
        print!("{shown}");
    }
    Ok(Exit::Done)
}

fn diff(args: &DiffArgs) -> Result<Exit, Failure> {
    let (first, second) = (Archive::open(&args.first)?, Archive::open(&args.second)?);
    let diff = shelf::diff(&first, &second)?;
    if args.json {
        println!("{}", json!(diff));
    } else {
        print!("{}", diff.lines(args.all));
    }
    Ok(Exit::Done)
}

fn pack(args: PackArgs) -> Result<Exit, Failure> {
    let archive = Archive::open(&args.archive)?;
    let named = || PathBuf::from(format!("{}.tar.zst", archive.name()));
    let file = args.out.unwrap_or_else(named);
    let bytes = shelf::pack(&archive, &file)?;
    println!("{} ({} KiB)", file.display(), bytes.div_ceil(1024));
    Ok(Exit::Done)
}

fn unpack(args: &UnpackArgs) -> Result<Exit, Failure> {
    println!("{}", shelf::unpack(&args.file, &args.out)?.display());
    Ok(Exit::Done)
}

fn sign(args: &SignArgs) -> Result<Exit, Failure> {
    let key = secret_key(&args.key)?;
    for archive in &args.archives {
        println!("{}", sign_archive(archive, &key)?.display());
    }
    Ok(Exit::Done)
}

fn index(args: &IndexArgs) -> Result<Exit, Failure> {
    let key = args.sign.as_deref().map(secret_key).transpose()?;
    let exit = if args.check {
        check(args)?
    } else if let (Some(name), Some(why)) = (&args.withdraw, &args.because) {
        let index = shelf::withdraw(&args.folder, name, why)?;
        said(args.json, &[], &index.head);
        Exit::Done
    } else {
        let (index, added) = shelf::add(&args.folder, &args.names)?;
        said(args.json, &added, &index.head);
        Exit::Done
    };
    if let Some(key) = key {
        sign_file(&args.folder.join("index.json"), &key)?;
    }
    Ok(exit)
}

fn said(as_json: bool, added: &[String], head: &str) {
    if as_json {
        println!("{}", json!({ "added": added, "head": head }));
        return;
    }
    for name in added {
        println!("added {name}");
    }
    println!("head {head}");
}

fn check(args: &IndexArgs) -> Result<Exit, Failure> {
    let key = args.key.as_deref().map(PublicKey::read).transpose()?;
    let (index, found, others) = shelf::check(&args.folder, key.as_ref())?;
    if args.json {
        let line = json!({
            "entries": index.entries.len(), "head": index.head, "passed": found.is_empty(),
            "mismatches": found, "not_indexed": others,
        });
        println!("{line}");
    } else {
        for finding in &found {
            println!("MISMATCH {finding}");
        }
        for name in &others {
            println!("not in the index: {name}");
        }
        println!("{} entries, head {}", index.entries.len(), index.head);
    }
    Ok(if found.is_empty() {
        Exit::Done
    } else {
        Exit::Audit
    })
}

fn ro_crate(args: &RoCrateArgs) -> Result<Exit, Failure> {
    let archive = Archive::open(&args.archive)?;
    let crated = shelf::ro_crate(&archive, args.licence.as_deref())?;
    let beside = archive.path().parent().unwrap_or(Path::new("."));
    let file = beside.join(format!("{}-ro-crate-metadata.json", archive.name()));
    let failed = |e: std::io::Error| {
        Failure::new(Exit::Usage, format!("cannot write {}: {e}", file.display()))
    };
    std::fs::write(&file, format!("{crated:#}\n")).map_err(failed)?;
    println!("{}", file.display());
    Ok(Exit::Done)
}
