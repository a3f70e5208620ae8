//! Stores: the same model, bit for bit, and whatever can be wrong with one.

#[path = "support/golden.rs"]
#[expect(
    dead_code,
    reason = "only the paths and tokens of the cases are used here"
)]
mod golden;

use std::fs;
use std::path::{Path, PathBuf};

use palindrome_engine::formats::blocks::GgmlType;
use palindrome_engine::formats::gguf::{GgufFile, GgufWriter, Value};
use palindrome_engine::formats::store::{self, Packing, StoreError};
use palindrome_engine::model::{LoadOptions, LoadedModel};

fn packed(model: &Path) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.store");
    let (mut last, mut calls) = (0, 0);
    let done = store::pack(model, &path, |done, all| {
        assert!(last <= done && done <= all, "progress goes forward");
        (last, calls) = (done, calls + 1);
    })
    .unwrap();
    assert!(calls > 1);
    assert_eq!(done.bytes, fs::metadata(&path).unwrap().len());
    assert!(done.tiled.0 > 0, "{:?} tensors in tiles", done.tiled);
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing but the store is left: {left:?}");
    (folder, path)
}

fn bits(path: &Path, tokens: &[u32]) -> Vec<u32> {
    let model = LoadedModel::load(path, &LoadOptions::default()).unwrap();
    let logits = model.logits(&tokens[..tokens.len().min(40)]).unwrap();
    logits.iter().flatten().map(|x| x.to_bits()).collect()
}

#[test]
fn a_store_gives_the_same_bits_and_its_source_back() {
    for case in [
        "gpt-oss-8x4",
        "gpt-oss-32x2",
        "llama-mixed",
        "llama-tied",
        "qwen3moe-16x4",
        "qwen3moe-k",
        "shipped-short",
    ] {
        let golden = golden::read(case);
        let model = golden::model_path(&golden);
        let (folder, path) = packed(&model);
        assert!(store::is_store(&path) && !store::is_store(&model));
        assert_eq!(
            bits(&path, &golden.tokens),
            bits(&model, &golden.tokens),
            "{case}"
        );

        let prelude = store::verify(&path, |_, _| {}).unwrap();
        assert_eq!(prelude.parts[0].sha256, golden.model_sha256);
        let out = folder.path().join("back");
        let files = store::rebuild(&path, &out, |_, _| {}).unwrap();
        assert_eq!(files, [out.join(model.file_name().unwrap())]);
        assert!(
            fs::read(&files[0]).unwrap() == fs::read(&model).unwrap(),
            "{case}"
        );
        // What is there is kept.
        assert!(matches!(
            store::rebuild(&path, &out, |_, _| {}),
            Err(StoreError::Io { .. })
        ));
        assert!(files[0].exists());
    }
}

#[test]
fn packed_scales_give_the_same_bits_and_the_source_back() {
    let packing = Packing {
        packed_scales: true,
        ..Packing::default()
    };
    for (case, fit) in [
        ("gpt-oss-8x4", true),
        ("shipped-short", true),
        ("llama-mixed", false),
    ] {
        let golden = golden::read(case);
        let model = golden::model_path(&golden);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.store");
        let done = store::pack_as(packing, &model, &path, |_, _| {}).unwrap();
        assert_eq!(done.packed_scales > 0, fit, "{case}");
        assert_eq!(done.bytes, fs::metadata(&path).unwrap().len());
        assert_eq!(
            bits(&path, &golden.tokens),
            bits(&model, &golden.tokens),
            "{case}"
        );
        let prelude = store::verify(&path, |_, _| {}).unwrap();
        assert_eq!(prelude.parts[0].sha256, golden.model_sha256);
        assert_eq!(prelude.packed_scales.len(), done.packed_scales);

        let file = store::open(&path).unwrap();
        for tensor in file.tensors() {
            let packed = prelude.packed_scales.contains(&tensor.name);
            assert_eq!(file.has_packed_scales(tensor), packed, "{}", tensor.name);
            let used = file.used_bytes(tensor);
            if packed {
                let blocks = tensor.cols() / 32;
                assert_eq!(used, tensor.rows() / 16 * (16 + blocks * 264));
                assert!(file.bytes(tensor)[used..].iter().all(|b| *b == 0));
            } else {
                assert_eq!(used, tensor.len);
            }
        }
    }
}

#[test]
fn a_scale_too_far_from_the_others_keeps_its_tensor_as_it_was() {
    let golden = golden::read("gpt-oss-8x4");
    let source = golden::model_path(&golden);
    let name = "blk.0.ffn_gate_exps.weight";
    let mut bytes = fs::read(&source).unwrap();
    let file = GgufFile::open(&source).unwrap();
    // The first block of the tensor: its scale at nearly its least.
    let at = bytes
        .windows(64)
        .position(|w| w == &file.bytes(file.tensor(name).unwrap())[..64])
        .unwrap();
    bytes[at] = 1;
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model.gguf");
    fs::write(&model, &bytes).unwrap();
    let path = folder.path().join("model.store");
    let packing = Packing {
        packed_scales: true,
        ..Packing::default()
    };
    store::pack_as(packing, &model, &path, |_, _| {}).unwrap();
    let prelude = store::verify(&path, |_, _| {}).unwrap();
    assert!(!prelude.packed_scales.is_empty());
    assert!(!prelude.packed_scales.contains(&name.to_owned()));
}

#[test]
fn tiles_really_differ_from_rows() {
    let golden = golden::read("gpt-oss-8x4");
    let model = golden::model_path(&golden);
    let (_folder, path) = packed(&model);
    let (rows, tiles) = (GgufFile::open(&model).unwrap(), store::open(&path).unwrap());
    let moved = |name: &str| {
        let tensor = rows.tensor(name).unwrap();
        assert_eq!(tiles.tensor(name), Some(tensor));
        assert_eq!(
            tiles.is_tiled(tensor),
            rows.bytes(tensor) != tiles.bytes(tensor),
            "{name}"
        );
        tiles.is_tiled(tensor)
    };
    assert!(moved("blk.0.ffn_gate_exps.weight"));
    assert!(!moved("output_norm.weight"));
    tiles.check_values().unwrap();
}

#[test]
fn a_fault_in_a_tile_is_found_in_its_row() {
    let model = golden::model_path(&golden::read("gpt-oss-8x4"));
    let (folder, path) = packed(&model);
    let sound = store::open(&path).unwrap();
    let tensor = sound.tensor("blk.0.ffn_gate_exps.weight").unwrap();
    // The second tile's first scales are those of its rows, one after another.
    let row_bytes = tensor.len / tensor.rows();
    let at = 4096 + tensor.offset + 16 * row_bytes + 5;
    let mut bytes = fs::read(&path).unwrap();
    bytes[at] = 255;
    let damaged = folder.path().join("nan.store");
    fs::write(&damaged, bytes).unwrap();
    let error = store::open(&damaged).unwrap().check_values().unwrap_err();
    let error = error.to_string();
    assert!(error.contains("row 21"), "{error}");
}

#[test]
fn a_link_has_the_store_of_what_it_leads_to() {
    let folder = tempfile::tempdir().unwrap();
    let [model, link] = ["model.gguf", "another-name.gguf"].map(|name| folder.path().join(name));
    fs::copy(golden::model_path(&golden::read("gpt-oss-8x4")), &model).unwrap();
    std::os::unix::fs::symlink(&model, &link).unwrap();
    let prelude = |path: &Path| store::Prelude::of(&GgufFile::open(path).unwrap()).unwrap();
    let packed = prelude(&model);
    assert!(packed.same_source(&prelude(&link)));
    // A renaming changes the file's time of change: another source, as far as anyone can tell.
    std::thread::sleep(std::time::Duration::from_millis(20));
    let renamed = folder.path().join("renamed.gguf");
    fs::rename(&model, &renamed).unwrap();
    assert!(!packed.same_source(&prelude(&renamed)));
}

#[test]
fn packers_of_one_store_wait_for_each_other() {
    let model = golden::model_path(&golden::read("gpt-oss-8x4"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.store");
    // What a killed packer left is taken over.
    fs::write(folder.path().join("model.store.part"), vec![7; 10_000_000]).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| store::pack(&model, &path, |_, _| {}).unwrap());
        }
    });
    store::verify(&path, |_, _| {}).unwrap();
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing but the store is left: {left:?}");
}

#[test]
fn a_split_model_is_one_store() {
    let tensor = |name: &str, rows: u64| {
        let mut writer = GgufWriter::default();
        writer.tensor(name, GgmlType::Q8_0, &[64, rows]);
        writer
    };
    let folder = tempfile::tempdir().unwrap();
    let parts = [("a", 32u64), ("b", 17), ("c", 16)];
    for (i, (name, rows)) in parts.into_iter().enumerate() {
        let mut writer = tensor(name, rows);
        writer.set("split.no", Value::U16(i as u16));
        writer.set("split.count", Value::U16(3));
        writer.set("split.tensors.count", Value::I32(3));
        let mut data = Vec::new();
        for r in 0..rows {
            let row: Vec<f32> = (0..64).map(|c| (r * 64 + c) as f32).collect();
            GgmlType::Q8_0.quantize_row(&row, &mut data);
        }
        let file = fs::File::create(folder.path().join(format!("m-0000{}-of-00003.gguf", i + 1)));
        writer.write(&mut file.unwrap(), &[data]).unwrap();
    }
    let second = folder.path().join("m-00002-of-00003.gguf");
    let (out, path) = packed(&second);
    let (rows, tiles) = (
        GgufFile::open(&second).unwrap(),
        store::open(&path).unwrap(),
    );
    let moved = |name| {
        let tensor = rows.tensor(name).unwrap();
        rows.bytes(tensor) != tiles.bytes(tensor)
    };
    assert_eq!(["a", "b", "c"].map(moved), [true, false, true]);
    assert_eq!(tiles.stem(), "m-00001-of-00003");
    assert_eq!(rows.stem(), "m-00001-of-00003");
    let back = store::rebuild(&path, &out.path().join("back"), |_, _| {}).unwrap();
    assert_eq!(back.len(), 3);
    for file in back {
        let source = folder.path().join(file.file_name().unwrap());
        assert!(
            fs::read(&file).unwrap() == fs::read(&source).unwrap(),
            "{source:?}"
        );
    }
}

#[test]
fn a_damaged_store_is_refused() {
    let model = golden::model_path(&golden::read("gpt-oss-8x4"));
    let (folder, path) = packed(&model);
    let sound = fs::read(&path).unwrap();
    let check = |what: &str, bytes: &[u8]| {
        let path = folder.path().join("damaged.store");
        fs::write(&path, bytes).unwrap();
        match store::open(&path) {
            Ok(_) => panic!("{what}: opened"),
            Err(error) => error.to_string(),
        }
    };
    let changed = |at: usize, byte: u8| {
        let mut bytes = sound.clone();
        bytes[at] = byte;
        bytes
    };
    assert!(check("magic", &changed(0, b'X')).contains("not a store"));
    assert!(check("version", &changed(8, 9)).contains("pack the model again"));
    assert!(check("JSON", &changed(16, b'!')).contains("prelude is damaged"));
    assert!(check("length of JSON", &changed(15, 255)).contains("prelude is damaged"));
    assert!(check("shorter", &sound[..sound.len() - 4096]).contains("bytes long"));
    assert!(check("prelude only", &sound[..100]).contains("prelude is damaged"));
    assert!(check("empty", &[]).contains("not a store"));
    assert!(check("the model's magic", &changed(4096, b'X')).contains("GGUF"));

    // A flipped bit in a weight shows in the hash.
    let last = sound.iter().rposition(|b| *b != 0).unwrap();
    let damaged = folder.path().join("flipped.store");
    fs::write(&damaged, changed(last, sound[last] ^ 1)).unwrap();
    let error = store::verify(&damaged, |_, _| {}).unwrap_err();
    assert!(
        matches!(error, StoreError::Content { part: 1, .. }),
        "{error}"
    );
    let out = folder.path().join("back");
    assert!(store::rebuild(&damaged, &out, |_, _| {}).is_err());
    assert_eq!(
        fs::read_dir(&out).unwrap().count(),
        0,
        "no damaged file stays"
    );
}

#[test]
fn a_damaged_model_is_not_packed() {
    let golden = golden::read("gpt-oss-8x4");
    let mut bytes = fs::read(golden::model_path(&golden)).unwrap();
    let file = GgufFile::open(&golden::model_path(&golden)).unwrap();
    let tensor = file.tensor("blk.0.ffn_gate_exps.weight").unwrap();
    bytes[tensor.offset] = 255; // NaN as a scale
    let folder = tempfile::tempdir().unwrap();
    let (model, out) = (folder.path().join("m.gguf"), folder.path().join("m.store"));
    fs::write(&model, bytes).unwrap();
    let error = store::pack(&model, &out, |_, _| {})
        .unwrap_err()
        .to_string();
    assert!(error.contains("ffn_gate_exps"), "{error}");
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        1,
        "only the model is there"
    );
    fs::write(&model, "no model").unwrap();
    assert!(store::pack(&model, &out, |_, _| {}).is_err());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "still");
}

#[test]
fn a_store_never_takes_the_place_of_its_model() {
    let golden = golden::model_path(&golden::read("gpt-oss-8x4"));
    let folder = tempfile::tempdir().unwrap();
    let (model, link) = (folder.path().join("m.gguf"), folder.path().join("link"));
    fs::copy(&golden, &model).unwrap();
    std::os::unix::fs::symlink(&model, &link).unwrap();
    for out in [&model, &link] {
        let error = store::pack(&model, out, |_, _| {}).unwrap_err();
        assert!(matches!(error, StoreError::OverSource(_)), "{error}");
        assert!(fs::read(&model).unwrap() == fs::read(&golden).unwrap());
    }
}
