//! Any bytes at all: the reader returns a file or an error, and what it returns can be used.

#![no_main]

use libfuzzer_sys::fuzz_target;
use palindrome_engine::formats::gguf::GgufFile;

fuzz_target!(|bytes: &[u8]| {
    let Ok(file) = GgufFile::parse(bytes.to_vec()) else { return };
    for tensor in file.tensors() {
        assert_eq!(file.bytes(tensor).len(), tensor.len);
        assert_eq!(file.tensor(&tensor.name), Some(tensor));
    }
    // Unsound values are an error, never a panic.
    let _ = file.check_values();
});
