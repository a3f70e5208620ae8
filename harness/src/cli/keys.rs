//! `palindrome keygen`, and passwords of secret keys.

use std::io;
use std::path::Path;

use super::archive_args::KeygenArgs;
use super::{Exit, Failure};
use crate::archive::{SecretKey, generate_keys};

/// The variable that a password is taken from where nobody can type one.
const PASSWORD: &str = "PALINDROME_KEY_PASSWORD";

/// Makes a pair of keys.
pub fn keygen(args: &KeygenArgs) -> Result<Exit, Failure> {
    let password = if args.no_password {
        None
    } else {
        Some(new_password().map_err(|e| {
            let what =
                format!("cannot ask for a password: {e}; set {PASSWORD}, or give `--no-password`");
            Failure::new(Exit::Usage, what)
        })?)
    };
    let (secret, public, key) = generate_keys(&args.out, password)?;
    println!("{}  signs: keep it to yourself", secret.display());
    println!("{}  verifies: publish it", public.display());
    println!("key {}, as text {}", key.id(), key.text());
    Ok(Exit::Done)
}

/// Reads a secret key; a password is asked for where the key has one.
pub fn secret_key(path: &Path) -> Result<SecretKey, Failure> {
    let ask = || match std::env::var(PASSWORD) {
        Ok(password) => Ok(password),
        Err(_) => rpassword::prompt_password(format!("Password of {}: ", path.display())),
    };
    Ok(SecretKey::read(path, ask)?)
}

fn new_password() -> io::Result<String> {
    if let Ok(password) = std::env::var(PASSWORD) {
        return Ok(password);
    }
    let password = rpassword::prompt_password("Password of the new key: ")?;
    if rpassword::prompt_password("The same again: ")? != password {
        return Err(io::Error::other("the two are not the same"));
    }
    if password.is_empty() {
        return Err(io::Error::other("it is empty"));
    }
    Ok(password)
}
