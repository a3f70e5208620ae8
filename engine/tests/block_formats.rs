//! Dequantised values against those of the `gguf` Python package, bit for bit.

use std::path::Path;

use palindrome_engine::formats::blocks::GgmlType;
use serde_json::Value;

#[test]
fn every_format_equals_the_gguf_package() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let header = std::fs::read_to_string(folder.join("blocks.json")).expect("the golden header");
    let header: Value = serde_json::from_str(&header).expect("JSON");
    let body = std::fs::read(folder.join("blocks.bin")).expect("the golden values");
    let formats = header["formats"].as_array().expect("a list of formats");
    let but_f32 = GgmlType::ALL.len() - 1;
    assert_eq!(formats.len(), but_f32, "all formats but F32");
    for format in formats {
        let number = |key: &str| format[key].as_u64().expect("a number") as usize;
        let name = format["format"].as_str().expect("a name");
        let ty = GgmlType::from_number(number("ggml_type") as u32).expect("a type we read");
        assert_eq!(ty.name(), name);
        let (size, count) = (number("block_bytes"), number("block_values"));
        for i in 0..number("blocks") {
            let block = &body[number("bytes_at") + i * size..][..size];
            let wanted = &body[number("values_at") + i * count * 4..][..count * 4];
            let mut got = vec![0f32; count];
            ty.dequantize_row(block, &mut got);
            for (j, (got, wanted)) in got.iter().zip(wanted.chunks_exact(4)).enumerate() {
                let wanted = u32::from_le_bytes(wanted.try_into().expect("four bytes"));
                assert_eq!(got.to_bits(), wanted, "{name}, block {i}, value {j}");
            }
        }
    }
}
