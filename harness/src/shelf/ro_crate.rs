//! An archive described as a research object (RO-Crate 1.2), in a file beside it: for repositories of
//! research data. Nothing in it is evidence; the archive does not know of it.

use serde_json::{Value, json};

use crate::archive::{Archive, ArchiveError, sha256_hex};

/// The specification that the description follows.
const CONFORMS: &str = "https://w3id.org/ro/crate/1.2";

/// The description, with paths as seen from the folder that the archive lies in. `licence` is the
/// address of a licence.
pub fn ro_crate(archive: &Archive, licence: Option<&str>) -> Result<Value, ArchiveError> {
    let name = archive.name();
    let host = archive.host()?;
    let plan = archive.plan();
    let figures = archive.figures()?;
    let manifest = archive.manifest()?;
    let verdict = figures.as_ref().map(|f| f.verdict().sentence.clone());
    let question = figures.as_ref().and_then(|f| f.question());
    let mut files: Vec<(String, Option<String>)> = manifest
        .iter()
        .flat_map(|m| &m.subject)
        .map(|s| (s.name.clone(), s.digest.get("sha256").cloned()))
        .collect();
    if manifest.is_some() {
        let hash = sha256_hex(&archive.read("manifest.json")?);
        files.push(("manifest.json".into(), Some(hash)));
    }
    let at = |file: &str| format!("{name}/{file}");
    let parts: Vec<Value> = files.iter().map(|(f, _)| json!({ "@id": at(f) })).collect();
    let described = files.iter().map(|(file, hash)| {
        let mut entity = json!({
            "@id": at(file), "@type": "File", "name": file, "encodingFormat": format_of(file),
        });
        if let Some(hash) = hash {
            entity["sha256"] = hash.clone().into();
        }
        entity
    });
    let description = [
        question.map(str::to_owned),
        verdict,
        Some(format!("Arms: {}.", plan.arms.join(", "))),
    ];
    let description: Vec<String> = description.into_iter().flatten().collect();
    let mut graph = vec![
        json!({
            "@id": "ro-crate-metadata.json", "@type": "CreativeWork",
            "conformsTo": { "@id": CONFORMS }, "about": { "@id": "./" },
        }),
        json!({
            "@id": "./", "@type": "Dataset",
            "name": format!("{}: {name}", plan.study),
            "description": description.join(" "),
            "datePublished": host.utc,
            "license": { "@id": licence.unwrap_or("#licence") },
            "identifier": name,
            "hasPart": parts,
            "mentions": { "@id": "#run" },
        }),
        json!({
            "@id": "#run", "@type": "CreateAction",
            "name": format!("Study {}, {} sessions", plan.study, plan.sessions.len()),
            "startTime": host.utc,
            "instrument": { "@id": "#palindrome" },
            "result": { "@id": "./" },
        }),
        json!({
            "@id": "#palindrome", "@type": "SoftwareApplication",
            "name": "palindrome", "version": host.harness_version,
        }),
    ];
    let stated = licence.map_or("Not stated", |_| "As linked");
    graph.push(json!({
        "@id": licence.unwrap_or("#licence"), "@type": "CreativeWork",
        "name": stated, "description": "The licence of the archive is its publisher's to state.",
    }));
    graph.extend(described);
    Ok(json!({ "@context": format!("{CONFORMS}/context"), "@graph": graph }))
}

/// Media type by the ends of an archive's file names.
fn format_of(file: &str) -> &'static str {
    let ends = [
        (".json", "application/json"),
        (".jsonl", "application/jsonl"),
        (".toml", "application/toml"),
        (".zst", "application/zstd"),
    ];
    let known = ends.iter().find(|(end, _)| file.ends_with(end));
    known.map_or("text/plain", |(_, kind)| kind)
}
