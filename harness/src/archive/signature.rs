//! Signatures over the manifest in minisign's format (Ed25519 over BLAKE2b-512), in
//! `manifest.json.minisig`: `minisign -Vm manifest.json -p KEY.pub` verifies them too.

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ct_codecs::{Base64, Decoder};
use minisign::{KeyPair, PublicKeyBox, SecretKeyBox, SignatureBox};

use super::ArchiveError;
use super::disk::write_atomic;
use super::layout::{MANIFEST, SEAL, utc_rfc3339};

/// What stands in a signature's line that nothing protects.
const UNTRUSTED: &str = "signature of a sealed palindrome archive";
/// Before the signer's public key in the protected comment.
const KEY_MARK: &str = "public key ";
/// Length of a base64 signature of 64 bytes.
const SIGNATURE_CHARS: usize = 88;

/// Why a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// Not there, or not readable.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// To what.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Not a key in minisign's format, or another password.
    #[error("{path} is no {expected}: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What it should be.
        expected: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// A key file is never replaced.
    #[error("{0} is there already; keys are not replaced: give another folder with `--out`")]
    Exists(PathBuf),
    /// The system gives no random numbers, or the key does not sign.
    #[error("cannot {action}: {reason}")]
    Crypto {
        /// What was being done.
        action: &'static str,
        /// Why not.
        reason: String,
    },
}

impl KeyError {
    fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }

    fn crypto(action: &'static str) -> impl FnOnce(minisign::PError) -> Self {
        move |error| Self::Crypto {
            action,
            reason: error.to_string(),
        }
    }
}

/// A key that verifies.
#[derive(Clone, Debug)]
pub struct PublicKey(minisign::PublicKey);

impl PublicKey {
    /// Reads a key from a file of minisign, or from the key's own text (`RW...`).
    pub fn read(file_or_text: &str) -> Result<Self, KeyError> {
        if let Ok(key) = minisign::PublicKey::from_base64(file_or_text) {
            return Ok(Self(key));
        }
        let path = Path::new(file_or_text);
        let text = fs::read_to_string(path).map_err(KeyError::io("read", path))?;
        PublicKeyBox::from_string(&text)
            .and_then(PublicKeyBox::into_public_key)
            .map(Self)
            .map_err(|error| KeyError::Malformed {
                path: path.into(),
                expected: "public key of minisign",
                reason: error.to_string(),
            })
    }

    /// The key's number, as minisign prints it.
    pub fn id(&self) -> String {
        number(self.0.keynum())
    }

    /// The key as text.
    pub fn text(&self) -> String {
        self.0.to_base64()
    }
}

/// A key that signs.
pub struct SecretKey(minisign::SecretKey);

impl SecretKey {
    /// Reads a key file of minisign; `password` is asked only for a key that has one.
    pub fn read(
        path: &Path,
        password: impl FnOnce() -> std::io::Result<String>,
    ) -> Result<Self, KeyError> {
        let text = fs::read_to_string(path).map_err(KeyError::io("read", path))?;
        let bad = |reason: String| KeyError::Malformed {
            path: path.into(),
            expected: "secret key of minisign",
            reason,
        };
        let boxed = || SecretKeyBox::from_string(&text).map_err(|e| bad(e.to_string()));
        if let Some(key) = without_password(&text) {
            return Ok(Self(key));
        }
        if text
            .lines()
            .nth(1)
            .is_none_or(|key| !key.starts_with("RWRTY0Iy"))
        {
            return Err(bad("its second line is not that of an encrypted key".into()));
        }
        let password = password().map_err(KeyError::io("ask for the password of", path))?;
        boxed()?
            .into_secret_key(Some(password))
            .map(Self)
            .map_err(|e| bad(e.to_string()))
    }

    /// The key that verifies what this one signs.
    pub fn public(&self) -> Result<PublicKey, KeyError> {
        minisign::PublicKey::from_secret_key(&self.0)
            .map(PublicKey)
            .map_err(KeyError::crypto("find the public key"))
    }

    /// A signature over bytes, with a time and the public key in its protected comment.
    fn sign(&self, bytes: &[u8], now: SystemTime) -> Result<String, KeyError> {
        let public = self.public()?;
        let comment = format!("signed {}, {KEY_MARK}{}", utc_rfc3339(now), public.text());
        let signed = minisign::sign(
            Some(&public.0),
            &self.0,
            Cursor::new(bytes),
            Some(&comment),
            Some(UNTRUSTED),
        );
        Ok(signed.map_err(KeyError::crypto("sign"))?.to_string())
    }
}

/// Writes a new pair of keys, `palindrome.key` and `palindrome.pub`, into a folder. Without a
/// password the secret key is readable by whoever can read its file.
pub fn generate_keys(
    folder: &Path,
    password: Option<String>,
) -> Result<(PathBuf, PathBuf, PublicKey), KeyError> {
    fs::create_dir_all(folder).map_err(KeyError::io("create", folder))?;
    let at = |name: &str| folder.join(name);
    let (secret_path, public_path) = (at("palindrome.key"), at("palindrome.pub"));
    for path in [&secret_path, &public_path] {
        if path.exists() {
            return Err(KeyError::Exists(path.clone()));
        }
    }
    let pair = match password {
        Some(password) => KeyPair::generate_encrypted_keypair(Some(password)),
        None => KeyPair::generate_unencrypted_keypair(),
    }
    .map_err(KeyError::crypto("make a key"))?;
    let secret = pair
        .sk
        .to_box(None)
        .map_err(KeyError::crypto("write a key"))?;
    let public = pair.pk.to_box().map_err(KeyError::crypto("write a key"))?;
    private_file(&secret_path, &secret.to_bytes())?;
    fs::write(&public_path, public.to_bytes()).map_err(KeyError::io("write", &public_path))?;
    Ok((secret_path, public_path, PublicKey(pair.pk)))
}

/// The key of a file that needs no password. `minisign -W` leaves the key's checksum empty, which the
/// library takes for a damaged key; whether the key works shows when it signs.
fn without_password(text: &str) -> Option<minisign::SecretKey> {
    let bytes = Base64::decode_to_vec(text.lines().nth(1)?, None).ok()?;
    let unencrypted = bytes.starts_with(b"Ed\0\0B2");
    unencrypted
        .then(|| minisign::SecretKey::from_bytes(&bytes).ok())
        .flatten()
}

/// A new file that only its owner may read.
fn private_file(path: &Path, bytes: &[u8]) -> Result<(), KeyError> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(path).map_err(KeyError::io("create", path))?;
    file.write_all(bytes).map_err(KeyError::io("write", path))
}

/// Signs a sealed archive's manifest; a signature that is there is replaced. Returns its file.
pub fn sign_archive(archive: &Path, key: &SecretKey) -> Result<PathBuf, SignError> {
    if !archive.join(SEAL).is_file() {
        return Err(SignError::NotSealed(archive.into()));
    }
    sign_file(&archive.join(MANIFEST), key)
}

/// Signs a file into `<file>.minisig` beside it.
pub fn sign_file(file: &Path, key: &SecretKey) -> Result<PathBuf, SignError> {
    let bytes = fs::read(file).map_err(KeyError::io("read", file))?;
    let text = key.sign(&bytes, SystemTime::now())?;
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".minisig");
    let path = file.with_file_name(name);
    write_atomic(&path, text.as_bytes())?;
    Ok(path)
}

/// Why there is no signature.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// The key, or reading what is to be signed.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Writing.
    #[error(transparent)]
    Write(#[from] ArchiveError),
    /// Only what does not change any more is signed.
    #[error("{0} is not sealed; only sealed archives are signed")]
    NotSealed(PathBuf),
}

/// What a signature shows.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Signed {
    /// Number of the key that signed.
    pub key: String,
    /// Whether the signature is that key's over this file. Unknown where the signature does not
    /// carry its key and none was given.
    pub holds: Option<bool>,
    /// Whether it is the key that was given.
    pub vouched: bool,
    /// The comment that the signature covers.
    pub comment: String,
}

/// Checks `<file>.minisig`. Absent when there is none; the error says what does not hold.
pub fn check_signature(
    file: &Path,
    key: Option<&PublicKey>,
) -> Result<Option<Signed>, (&'static str, String)> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".minisig");
    let text = match fs::read(file.with_file_name(name)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(("", format!("cannot read it: {error}"))),
    };
    let malformed = |why: &str| ("", format!("is no signature of minisign: {why}"));
    let text = String::from_utf8(text).map_err(|_| malformed("it is not UTF-8"))?;
    let signature =
        SignatureBox::from_string(&text).map_err(|error| malformed(&error.to_string()))?;
    if text.lines().nth(3).map(str::len) != Some(SIGNATURE_CHARS) {
        return Err(malformed("its fourth line is not 64 bytes in base64"));
    }
    let comment = signature
        .trusted_comment()
        .map_err(|error| malformed(&error.to_string()))?;
    // One way of writing each signature: what decodes to the same is not the same file.
    if signature.to_string() != text {
        return Err(malformed("it is not as minisign writes it"));
    }
    if !signature.is_prehashed() {
        return Err(malformed("it is of the old kind, without BLAKE2b"));
    }
    let own = comment
        .rsplit_once(KEY_MARK)
        .and_then(|(_, key)| minisign::PublicKey::from_base64(key).ok());
    let untrusted = signature.untrusted_comment().unwrap_or_default();
    // Signed by this program: both comments say so.
    match (&own, untrusted == UNTRUSTED) {
        (Some(_), false) => {
            let what = format!("found {untrusted}, expected {UNTRUSTED}");
            return Err(("untrusted comment", what));
        }
        (None, true) => {
            let what = format!("found {comment}, which does not end with the signer's {KEY_MARK}");
            return Err(("trusted comment", what));
        }
        (Some(_), true) | (None, false) => {}
    }
    let signed = |holds| Signed {
        key: number(signature.keynum()),
        holds,
        vouched: key.is_some(),
        comment: comment.clone(),
    };
    let Some(by) = key.map(|key| &key.0).or(own.as_ref()) else {
        return Ok(Some(signed(None)));
    };
    if by.keynum() != signature.keynum() {
        let what = format!(
            "found {}, expected {} by {}",
            number(signature.keynum()),
            number(by.keynum()),
            if key.is_some() {
                "the key given"
            } else {
                "its own comment"
            }
        );
        return Err(("key", what));
    }
    let bytes = fs::read(file).map_err(|e| ("", format!("cannot read what it signs: {e}")))?;
    minisign::verify(by, &signature, Cursor::new(bytes), true, false, false)
        .map_err(|error| ("signature", error.to_string()))?;
    Ok(Some(signed(Some(true))))
}

/// A key's number as minisign prints it: 16 digits, the last byte first.
fn number(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().rev().fold(String::new(), |mut out, byte| {
        // Writing to a String cannot fail.
        let _ = write!(out, "{byte:02X}");
        out
    })
}
