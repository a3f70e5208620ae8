//! Sound files read back; each way of being wrong has its own error; mutations never panic.

use proptest::prelude::*;

use super::{GgufError, GgufFile, GgufWriter, Value};
use crate::formats::blocks::GgmlType;

/// A file of two tensors, and their bytes.
fn sample() -> (GgufWriter, Vec<Vec<u8>>) {
    let mut w = GgufWriter::default();
    w.set("general.architecture", Value::String("test".into()));
    w.set("n", Value::U32(7));
    let words = ["a", "b"].map(|s| Value::String(s.into()));
    w.set("words", Value::Array(words.to_vec()));
    w.tensor("first", GgmlType::F32, &[3]);
    w.tensor("second", GgmlType::Mxfp4, &[64, 2]);
    (w, vec![vec![1; 12], vec![2; 68]])
}

fn bytes_of(w: &GgufWriter, data: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    w.write(&mut out, data).expect("writing to memory");
    out
}

fn sample_bytes() -> Vec<u8> {
    let (w, data) = sample();
    bytes_of(&w, &data)
}

fn error(bytes: Vec<u8>) -> GgufError {
    match GgufFile::parse(bytes) {
        Err(e) => e,
        Ok(_) => panic!("the file is unsound"),
    }
}

/// The position right after the first occurrence of `needle`.
fn after(bytes: &[u8], needle: &str) -> usize {
    let needle = needle.as_bytes();
    let at = bytes.windows(needle.len()).position(|w| w == needle);
    at.expect("the needle is there") + needle.len()
}

fn patched(at: impl FnOnce(&[u8]) -> usize, new: &[u8]) -> Vec<u8> {
    let mut bytes = sample_bytes();
    let at = at(&bytes);
    bytes[at..at + new.len()].copy_from_slice(new);
    bytes
}

/// Offsets in a description after its name: count of dimensions, dimensions, type, offset.
fn second(field: usize) -> impl FnOnce(&[u8]) -> usize {
    move |b| after(b, "second") + field
}

const DIM0: usize = 4;
const TYPE: usize = 4 + 16;
const OFFSET: usize = 4 + 16 + 4;

#[test]
fn versions_and_alignments_read_back() {
    for version in [2, 3] {
        for alignment in [32, 64, 4096] {
            let (mut w, data) = sample();
            w.version = version;
            w.alignment = alignment;
            let bytes = bytes_of(&w, &data);
            assert_eq!(bytes.len() as u64, w.file_bytes());
            let file = GgufFile::parse(bytes).expect("sound");
            assert_eq!(file.version(), version);
            let t = file.tensor("second").expect("present");
            assert_eq!(
                (t.ty, &t.dims[..], t.cols(), t.rows()),
                (GgmlType::Mxfp4, &[64, 2][..], 64, 2)
            );
            assert_eq!(file.bytes(t), vec![2; 68]);
            assert_eq!(t.offset as u64 % alignment, 0);
            assert_eq!(file.metadata().u32("n").expect("set"), 7);
            assert!(file.tensor("third").is_none());
        }
    }
}

#[test]
fn magic_endianness_and_version() {
    assert!(
        matches!(error(patched(|_| 0, b"GGML")), GgufError::BadMagic { found } if &found == b"GGML")
    );
    assert!(matches!(
        error(patched(|_| 4, &[0, 0, 0, 3])),
        GgufError::BigEndian
    ));
    assert!(matches!(
        error(patched(|_| 4, &[1, 0, 0, 0])),
        GgufError::UnsupportedVersion { version: 1 }
    ));
    assert!(matches!(
        error(patched(|_| 4, &[4, 0, 0, 0])),
        GgufError::UnsupportedVersion { version: 4 }
    ));
}

#[test]
fn truncation_anywhere_is_an_error_that_says_so() {
    let bytes = sample_bytes();
    for len in 0..bytes.len() {
        let e = error(bytes[..len].to_vec());
        // The last bytes are padding that no tensor needs.
        let text = e.to_string();
        let named = matches!(
            e,
            GgufError::Truncated { .. }
                | GgufError::StringPastEnd { .. }
                | GgufError::AbsurdCount { .. }
                | GgufError::TensorPastEnd { .. }
        );
        assert!(named, "at {len}: {text}");
        if len + 28 + 1 == bytes.len() {
            break;
        }
    }
    let cut = bytes[..bytes.len() - 64].to_vec();
    let e = error(cut);
    assert!(
        matches!(&e, GgufError::TensorPastEnd { name, .. } if name == "second"),
        "{e}"
    );
}

#[test]
fn strings_counts_and_types_in_metadata() {
    let huge = u64::MAX.to_le_bytes();
    let key_length = |b: &[u8]| after(b, "general.architecture") - 28;
    assert!(matches!(
        error(patched(key_length, &huge)),
        GgufError::StringPastEnd { len: u64::MAX, .. }
    ));
    assert!(matches!(
        error(patched(|b| after(b, "general.archi"), &[0xff])),
        GgufError::NotUtf8 { .. }
    ));
    for at in [8, 16] {
        let e = error(patched(move |_| at, &huge));
        assert!(
            matches!(
                e,
                GgufError::AbsurdCount {
                    count: u64::MAX,
                    ..
                }
            ),
            "{e}"
        );
    }
    let kind = |b: &[u8]| after(b, "words");
    let e = error(patched(kind, &13u32.to_le_bytes()));
    assert!(
        matches!(&e, GgufError::UnknownValueType { number: 13, key } if key == "words"),
        "{e}"
    );
    let element = |b: &[u8]| after(b, "words") + 4;
    let e = error(patched(element, &9u32.to_le_bytes()));
    assert!(
        matches!(&e, GgufError::NestedArray { key } if key == "words"),
        "{e}"
    );
    let e = error(patched(element, &99u32.to_le_bytes()));
    assert!(
        matches!(e, GgufError::UnknownValueType { number: 99, .. }),
        "{e}"
    );
    let e = error(patched(|b| after(b, "words") + 8, &huge));
    assert!(matches!(e, GgufError::AbsurdCount { .. }), "{e}");

    let (mut w, data) = sample();
    w.set("flag", Value::Bool(true));
    let mut bytes = bytes_of(&w, &data);
    let at = after(&bytes, "flag") + 4;
    bytes[at] = 2;
    assert!(matches!(error(bytes), GgufError::BadBool { found: 2, .. }));
}

#[test]
fn duplicates() {
    let (mut w, data) = sample();
    w.set("n", Value::U32(8));
    assert!(matches!(error(bytes_of(&w, &data)), GgufError::DuplicateKey { key } if key == "n"));
    let (mut w, mut data) = sample();
    w.tensor("first", GgmlType::F32, &[1]);
    data.push(vec![0; 4]);
    let e = error(bytes_of(&w, &data));
    assert!(
        matches!(&e, GgufError::DuplicateTensor { name } if name == "first"),
        "{e}"
    );
}

#[test]
fn alignments_that_are_none() {
    for value in [
        Value::U32(0),
        Value::U32(3),
        Value::String("32".into()),
        Value::U64(1 << 40),
    ] {
        let (mut w, data) = sample();
        w.set("general.alignment", value);
        let e = error(bytes_of(&w, &data));
        assert!(matches!(e, GgufError::BadAlignment { .. }), "{e}");
    }
}

#[test]
fn tensor_descriptions() {
    for count in [0u32, 5, u32::MAX] {
        let e = error(patched(second(0), &count.to_le_bytes()));
        assert!(matches!(e, GgufError::BadDimCount { .. }), "{e}");
    }
    let dims = |a: u64, b: u64| [a.to_le_bytes(), b.to_le_bytes()].concat();
    let e = error(patched(second(DIM0), &dims(64, 0)));
    assert!(matches!(e, GgufError::ZeroDim { .. }), "{e}");
    let e = error(patched(second(DIM0), &dims(1 << 40, 1 << 40)));
    assert!(matches!(e, GgufError::TooManyElements { .. }), "{e}");
    let e = error(patched(second(DIM0), &dims(65, 2)));
    assert!(
        matches!(
            e,
            GgufError::PartialBlock {
                cols: 65,
                block: 32,
                ..
            }
        ),
        "{e}"
    );
    let e = error(patched(second(DIM0), &dims(64, 1 << 30)));
    assert!(matches!(e, GgufError::TensorPastEnd { .. }), "{e}");
    let e = error(patched(second(TYPE), &10u32.to_le_bytes()));
    assert_eq!(
        e.to_string(),
        "tensor `second` is of type Q2_K, which is not supported; \
         supported are F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q4_K, Q5_K, Q6_K, MXFP4"
    );
    let e = error(patched(second(TYPE), &999u32.to_le_bytes()));
    assert!(
        matches!(&e, GgufError::UnsupportedType { ty, .. } if ty.contains("999")),
        "{e}"
    );
    let e = error(patched(second(OFFSET), &33u64.to_le_bytes()));
    assert!(matches!(e, GgufError::Unaligned { offset: 33, .. }), "{e}");
    let e = error(patched(second(OFFSET), &(u64::MAX - 31).to_le_bytes()));
    assert!(matches!(e, GgufError::TensorPastEnd { .. }), "{e}");
    let e = error(patched(second(OFFSET), &0u64.to_le_bytes()));
    assert!(matches!(e, GgufError::Overlap { .. }), "{e}");
}

#[test]
fn a_nan_scale_is_found_with_its_place() {
    let (w, mut data) = sample();
    data[1][17 * 3] = 255;
    let file = GgufFile::parse(bytes_of(&w, &data)).expect("the container is sound");
    let e = file.check_values().expect_err("a NaN scale");
    assert_eq!(
        e.to_string(),
        "tensor `second` (MXFP4), row 1, block 1: an E8M0 scale of 255, which is NaN; \
         the file is corrupt, download or convert it again"
    );
}

/// Writes parts `w[i]` under their names in a new folder.
fn split_files(parts: &[GgufWriter]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (i, w) in parts.iter().enumerate() {
        let name = format!("m-{:05}-of-{:05}.gguf", i + 1, parts.len());
        let bytes = bytes_of(w, &[vec![i as u8 + 1; 8]]);
        std::fs::write(folder.path().join(name), bytes).expect("writable");
    }
    folder
}

fn part(no: u16, count: u16, total: i32, tensor: &str) -> GgufWriter {
    let mut w = GgufWriter::default();
    w.set("split.no", Value::U16(no));
    w.set("split.count", Value::U16(count));
    w.set("split.tensors.count", Value::I32(total));
    w.tensor(tensor, GgmlType::F32, &[2]);
    w
}

#[test]
fn split_files_open_from_any_part() {
    let folder = split_files(&[part(0, 2, 2, "a"), part(1, 2, 2, "b")]);
    for name in ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"] {
        let file = GgufFile::open(&folder.path().join(name)).expect("both parts are there");
        let b = file.tensor("b").expect("from the second part");
        assert_eq!((b.part, file.bytes(b)), (1, &[2u8; 8][..]));
        assert_eq!(file.paths().len(), 2);
    }
}

#[test]
fn split_files_that_do_not_fit() {
    let open =
        |folder: &tempfile::TempDir, name: &str| match GgufFile::open(&folder.path().join(name)) {
            Err(e) => e,
            Ok(_) => panic!("the parts do not fit"),
        };
    let first = "m-00001-of-00002.gguf";
    let folder = split_files(&[part(0, 2, 2, "a"), part(1, 2, 2, "b")]);
    std::fs::copy(folder.path().join(first), folder.path().join("x.gguf")).expect("copied");
    assert!(matches!(
        open(&folder, "x.gguf"),
        GgufError::SplitName { count: 2, .. }
    ));
    std::fs::remove_file(folder.path().join("m-00002-of-00002.gguf")).expect("removed");
    assert!(matches!(
        open(&folder, first),
        GgufError::MissingPart {
            part: 2,
            count: 2,
            ..
        }
    ));

    let folder = split_files(&[part(0, 2, 2, "a"), part(0, 2, 2, "b")]);
    assert!(matches!(
        open(&folder, first),
        GgufError::SplitMismatch {
            key: "split.no",
            ..
        }
    ));
    let folder = split_files(&[part(0, 2, 3, "a"), part(1, 2, 3, "b")]);
    let e = open(&folder, first);
    assert!(
        matches!(
            e,
            GgufError::SplitMismatch {
                key: "split.tensors.count",
                ..
            }
        ),
        "{e}"
    );
    let folder = split_files(&[part(0, 2, 2, "a"), part(1, 2, 2, "a")]);
    assert!(matches!(open(&folder, first), GgufError::InPart { .. }));
    assert!(matches!(open(&folder, "absent.gguf"), GgufError::Io { .. }));
    assert!(matches!(
        GgufFile::open(folder.path()),
        Err(GgufError::Io { .. })
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn mutations_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
        whole: bool,
    ) {
        let mut bytes = sample_bytes();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if !whole {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(file) = GgufFile::parse(bytes) {
            for t in file.tensors() {
                prop_assert_eq!(file.bytes(t).len(), t.len);
            }
            let _ = file.check_values();
        }
    }
}
