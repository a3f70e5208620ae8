//! The header of a harmony message: role, recipient, channel and content type, as models really
//! write them.

/// Longest header that is waited for, in bytes: a name of 64 characters in a namespace of 64,
/// the words around it, and room to spare. Anything longer is text without a `<|message|>`.
const LONGEST: usize = 256;

/// What the body of a message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The analysis channel.
    Reasoning,
    /// The final channel, a preamble on the commentary channel, and whatever is not understood.
    Content,
    /// A call of this tool.
    Call(String),
}

/// A header while it is being read: the bytes of its three parts.
#[derive(Debug, Default)]
pub struct Header {
    /// Whether `<|start|>` was seen; else the prompt, or the message before, implies it.
    started: bool,
    role: Vec<u8>,
    /// After `<|channel|>`.
    channel: Option<Vec<u8>>,
    /// After `<|constrain|>`.
    constrain: Option<Vec<u8>>,
}

impl Header {
    /// A header after `<|start|>`.
    pub fn started() -> Self {
        Self {
            started: true,
            ..Self::default()
        }
    }

    /// Adds text to the part that is open. False if this cannot be a header any more.
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        let part = self
            .constrain
            .as_mut()
            .or(self.channel.as_mut())
            .unwrap_or(&mut self.role);
        part.extend_from_slice(bytes);
        let parts = [
            Some(&self.role),
            self.channel.as_ref(),
            self.constrain.as_ref(),
        ];
        let length: usize = parts.into_iter().flatten().map(Vec::len).sum();
        length <= LONGEST && (self.started || self.channel.is_some() || may_be_role(&self.role))
    }

    /// `<|channel|>`. Gives back text that was in the place of the role and is none.
    pub fn open_channel(&mut self) -> Vec<u8> {
        let stray = self.take_stray_role();
        if let Some(earlier) = self.channel.replace(Vec::new()) {
            // A second channel: the first may still have named the recipient.
            self.role.push(b' ');
            self.role.extend(earlier);
            self.started = true;
        }
        stray
    }

    /// `<|constrain|>`.
    pub fn open_constrain(&mut self) {
        self.constrain.get_or_insert_default();
    }

    /// Text in the place of the role that is no role, unless `<|start|>` promised one.
    pub fn take_stray_role(&mut self) -> Vec<u8> {
        let text = String::from_utf8_lossy(&self.role);
        let word = text.trim();
        let is_role = word.is_empty() || word == "assistant" || word.contains("to=");
        if self.started || is_role {
            Vec::new()
        } else {
            std::mem::take(&mut self.role)
        }
    }

    /// What the message is, from what was read of its header.
    pub fn purpose(&self) -> Purpose {
        let channel = self
            .channel
            .as_deref()
            .map(String::from_utf8_lossy)
            .unwrap_or_default();
        let role = String::from_utf8_lossy(&self.role);
        let called = [&channel, &role].into_iter().find_map(|text| {
            let name = split_recipient(text)?.1;
            let name = name.strip_prefix("functions.").unwrap_or(name);
            // These are the other parties of a conversation, not tools.
            (!matches!(name, "" | "assistant" | "user" | "all")).then(|| name.to_owned())
        });
        let before = split_recipient(&channel).map_or(&*channel, |(before, ..)| before);
        match (called, before.split_whitespace().next()) {
            (Some(name), _) => Purpose::Call(name),
            (None, Some("analysis")) => Purpose::Reasoning,
            _ => Purpose::Content,
        }
    }

    /// What is text in a header that no `<|message|>` closed: all but the words that make sense
    /// in a header. Possibly empty.
    pub fn into_text(self) -> Vec<u8> {
        let purpose = self.purpose();
        let mut text = self.role;
        if self.started && matches!(text.trim_ascii(), b"assistant" | b"") {
            text.clear();
        }
        if let (true, Purpose::Call(_)) = (contains(&text, b"to="), &purpose) {
            text = after_recipient(&text);
        }
        let mut channel = self.channel.unwrap_or_default();
        if contains(&channel, b"to=") && matches!(purpose, Purpose::Call(_)) {
            channel = after_recipient(&channel);
        }
        text.extend(without_word(
            channel,
            &[b"analysis", b"commentary", b"final", b"json", b"code"],
        ));
        text.extend(without_word(self.constrain.unwrap_or_default(), &[b"json"]));
        if text.trim_ascii().is_empty() {
            Vec::new()
        } else {
            text
        }
    }
}

/// Whether the text before any `<|channel|>` can still become `assistant`, `to=...` or both.
fn may_be_role(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    if b"assistant".starts_with(text) {
        return true;
    }
    let rest = text
        .strip_prefix(b"assistant")
        .unwrap_or(text)
        .trim_ascii_start();
    rest.starts_with(b"to=") || b"to=".starts_with(rest)
}

/// Splits at `to=NAME`: what stands before, the name, and what stands after.
fn split_recipient(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("to=")?;
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    Some((before, &rest[..end], &rest[end..]))
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}

/// What stands after `to=NAME`, without a content type.
fn after_recipient(text: &[u8]) -> Vec<u8> {
    let Some(at) = text.windows(3).position(|window| window == b"to=") else {
        return text.to_vec();
    };
    let rest = &text[at..];
    let end = rest
        .iter()
        .position(u8::is_ascii_whitespace)
        .unwrap_or(rest.len());
    without_word(rest[end..].trim_ascii_start().to_vec(), &[b"json", b"code"])
}

/// `text` without its first word, if that is one of `words`.
fn without_word(text: Vec<u8>, words: &[&[u8]]) -> Vec<u8> {
    let start = text.len() - text.trim_ascii_start().len();
    for word in words {
        if let Some(rest) = text[start..].strip_prefix(*word)
            && !rest.first().is_some_and(u8::is_ascii_alphanumeric)
        {
            return rest.trim_ascii_start().to_vec();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(role: &str, channel: Option<&str>) -> Header {
        let mut header = Header::started();
        header.push(role.as_bytes());
        if let Some(channel) = channel {
            assert_eq!(header.open_channel(), b"");
            header.push(channel.as_bytes());
        }
        header
    }

    #[test]
    fn recipients_are_found_wherever_models_put_them() {
        let call = Purpose::Call("x".to_owned());
        let cases = [
            ("assistant to=functions.x", Some("commentary json")),
            ("assistant", Some("commentary to=functions.x ")),
            ("assistant", Some("analysis to=functions.x code")),
            ("assistant", Some("commentaryto=functions.x")),
            ("assistant", Some("commentary? to=x")),
            (" to=functions.x", None),
        ];
        for (role, channel) in cases {
            assert_eq!(
                header(role, channel).purpose(),
                call,
                "{role:?} {channel:?}"
            );
        }
    }

    #[test]
    fn channels_without_a_tool_are_reasoning_or_content() {
        let purpose = |channel| header("assistant", Some(channel)).purpose();
        assert_eq!(purpose("analysis"), Purpose::Reasoning);
        assert_eq!(purpose("analysis to=assistant"), Purpose::Reasoning);
        for channel in [
            "final",
            "commentary",
            "commentary?",
            "analysis?",
            "",
            "to=functions.",
        ] {
            assert_eq!(purpose(channel), Purpose::Content, "{channel:?}");
        }
        assert_eq!(header("assistant", None).purpose(), Purpose::Content);
    }

    #[test]
    fn text_in_an_unclosed_header_is_kept() {
        let text = |role, channel| {
            String::from_utf8(header(role, channel).into_text()).expect("the input was UTF-8")
        };
        assert_eq!(text("assistant", Some("final Hello")), "Hello");
        assert_eq!(text("assistant", Some("finally")), "finally");
        assert_eq!(text("assistant", Some("analysis")), "");
        assert_eq!(
            text("assistant", Some("commentary to=x json{\"a\":1}")),
            "{\"a\":1}"
        );
        assert_eq!(text("nobody", None), "nobody");
    }
}
