//! Short requests for a study that has none of its own yet.

/// File name and content of each; every sampling field is spelled out.
pub const SAMPLE_BODIES: [(&str, &str); 3] = [
    ("1-chat.json", include_str!("samples/1-chat.json")),
    ("2-code.json", include_str!("samples/2-code.json")),
    ("3-text.json", include_str!("samples/3-text.json")),
];
