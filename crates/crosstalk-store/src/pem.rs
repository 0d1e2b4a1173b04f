//! Private keys as PEM texts of PKCS#8, encrypted or not: the form that other programs read and write as well.
//!
//! Encryption is PBES2 with scrypt and AES-256-CBC. scrypt takes N = 2^14, r = 8, p = 5: 16 MiB, which is what OpenSSL
//! lets a file ask for, and five times over, so that guessing costs as much as with the parameters that are
//! recommended for passwords.

use crosstalk_envelope::PrivateKey;
use pkcs8::der::Decode as _;
use pkcs8::pkcs5::{EncryptionScheme, pbes2, scrypt};
use pkcs8::{EncryptedPrivateKeyInfoRef, LineEnding, PrivateKeyInfoRef, SecretDocument};
use std::io;
use zeroize::Zeroizing;

use crate::fault::KeyFileError;

const PLAIN: &str = "PRIVATE KEY";
const ENCRYPTED: &str = "ENCRYPTED PRIVATE KEY";
const LOG_N: u8 = 14;
const R: u32 = 8;
const P: u32 = 5;
/// What a file of others may ask for before it counts as an attack: 256 MiB of memory, and some seconds of work.
const MOST_MEMORY: u64 = 1 << 28;
const MOST_WORK: u64 = 1 << 30;
const MOST_ITERATIONS: u32 = 20_000_000;

/// The PEM text of a key, encrypted if there is a passphrase.
pub(crate) fn seal(
    key: &PrivateKey,
    passphrase: Option<&str>,
) -> Result<Zeroizing<String>, KeyFileError> {
    let unwritable = || KeyFileError::not_a_key("it can't be encoded", "");
    let der = key.to_der().map_err(|_| unwritable())?;
    let Some(passphrase) = passphrase else {
        return der.to_pem(PLAIN, LineEnding::LF).map_err(|_| unwritable());
    };
    if passphrase.is_empty() {
        return Err(KeyFileError::EmptyPassphrase);
    }
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|e| KeyFileError::not_a_key(e.to_string(), ""))?;
    let (salt, iv) = random.split_at(16);
    let parameters = scrypt::Params::new(LOG_N, R, P)
        .ok()
        .zip(iv.try_into().ok())
        .and_then(|(cost, iv)| pbes2::Parameters::generate_scrypt_aes256cbc(cost, salt, iv).ok());
    let info = PrivateKeyInfoRef::try_from(der.as_bytes()).ok();
    let (parameters, info) = parameters.zip(info).ok_or_else(unwritable)?;
    info.encrypt_with_params(parameters, passphrase)
        .and_then(|sealed| Ok(sealed.to_pem(ENCRYPTED, LineEnding::LF)?))
        .map_err(|_| unwritable())
}

/// The key of a text with one PEM block. The passphrase is asked for only if it is encrypted.
pub(crate) fn open(
    text: &str,
    ask: impl FnOnce() -> io::Result<Zeroizing<String>>,
) -> Result<PrivateKey, KeyFileError> {
    let (label, block) = block(text)?;
    let malformed = |_| KeyFileError::not_a_key("its PEM block is damaged", "copy it again");
    let (_, der) = SecretDocument::from_pem(&block).map_err(malformed)?;
    if label == PLAIN {
        return key(der.as_bytes());
    }
    let sealed = EncryptedPrivateKeyInfoRef::from_der(der.as_bytes()).map_err(malformed)?;
    require_bearable(&sealed.encryption_algorithm)?;
    let passphrase = ask().map_err(|source| KeyFileError::NoPassphrase { file: None, source })?;
    use pkcs8::pkcs5::Error as Fault;
    match sealed.decrypt(passphrase.as_bytes()) {
        Ok(der) => key(der.as_bytes()),
        Err(pkcs8::Error::EncryptedPrivateKey(
            Fault::UnsupportedAlgorithm { .. } | Fault::AlgorithmParametersInvalid { .. },
        )) => Err(unsupported()),
        // A wrong passphrase gives noise: padding that does not fit, or bytes that are no DER.
        Err(_) => Err(KeyFileError::WrongPassphrase { file: None }),
    }
}

/// Whether the key of a text is encrypted.
pub(crate) fn is_encrypted(text: &str) -> Result<bool, KeyFileError> {
    Ok(block(text)?.0 == ENCRYPTED)
}

fn key(der: &[u8]) -> Result<PrivateKey, KeyFileError> {
    PrivateKey::from_der(der).map_err(|e| KeyFileError::not_a_key(e.to_string(), ""))
}

fn unsupported() -> KeyFileError {
    KeyFileError::not_a_key("it is encrypted in an unsupported way", CONVERT)
}

/// Refuses parameters that are no parameters, or that would keep the machine busy.
fn require_bearable(scheme: &EncryptionScheme) -> Result<(), KeyFileError> {
    let bearable = match scheme.pbes2().map(|parameters| &parameters.kdf) {
        Some(pbes2::Kdf::Scrypt(scrypt)) => {
            let n = scrypt.cost_parameter;
            let (r, p) = (
                u64::from(scrypt.block_size),
                u64::from(scrypt.parallelization),
            );
            let memory = n.checked_mul(r * 128).filter(|m| *m <= MOST_MEMORY);
            let work = memory.and_then(|m| m.checked_mul(p));
            n.is_power_of_two() && n > 1 && r > 0 && p > 0 && work.is_some_and(|w| w <= MOST_WORK)
        }
        Some(pbes2::Kdf::Pbkdf2(pbkdf2)) => pbkdf2.iteration_count <= MOST_ITERATIONS,
        _ => return Err(unsupported()),
    };
    if bearable {
        Ok(())
    } else {
        Err(KeyFileError::not_a_key(
            "opening it would take more memory or time than any passphrase is worth",
            "",
        ))
    }
}

/// The text without the one block with a private key, line by line.
pub(crate) fn around(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.lines().map(str::trim).filter(move |line| {
        let (begins, ends) = (label_of(line, "BEGIN"), label_of(line, "END"));
        let outside = !inside && begins.is_none() && ends.is_none();
        inside = (inside || begins.is_some()) && ends.is_none();
        outside
    })
}

/// The one block with a private key, and its label.
fn block(text: &str) -> Result<(&'static str, Zeroizing<String>), KeyFileError> {
    let mut found = None;
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        let label = match label_of(line, "BEGIN") {
            None => continue,
            Some(PLAIN) => PLAIN,
            Some(ENCRYPTED) => ENCRYPTED,
            Some(other) => match refused(other) {
                Some((what, help)) => return Err(KeyFileError::not_a_key(what, help)),
                None => continue,
            },
        };
        if found.is_some() {
            let (what, help) = ("it has more than one key", "remove all but one");
            return Err(KeyFileError::not_a_key(what, help));
        }
        // Room for all of it at once: a text that grows leaves copies of secrets behind.
        let mut block = Zeroizing::new(String::with_capacity(text.len() + 1));
        block.push_str(line);
        loop {
            let line = lines.next().ok_or_else(|| {
                KeyFileError::not_a_key(
                    "its PEM block has no end",
                    "it was probably cut off: copy it again",
                )
            })?;
            block.push('\n');
            block.push_str(line);
            if label_of(line, "END").is_some() {
                break;
            }
        }
        block.push('\n');
        found = Some((label, block));
    }
    found.ok_or_else(|| {
        let what = format!(
            "it has no PEM block that begins with `-----BEGIN {PLAIN}-----` or `-----BEGIN {ENCRYPTED}-----`"
        );
        KeyFileError::not_a_key(what, "")
    })
}

fn label_of<'t>(line: &'t str, word: &str) -> Option<&'t str> {
    let line = line.strip_prefix("-----")?.strip_suffix("-----")?;
    line.strip_prefix(word)?.strip_prefix(' ')
}

/// How to bring a key into a form that is supported.
const CONVERT: &str = "convert it with `openssl pkcs8 -topk8 -in FILE -out NEW`";

/// Why a block with a known label is not read, and what to do.
fn refused(label: &str) -> Option<(&'static str, &'static str)> {
    match label {
        "EC PRIVATE KEY" | "RSA PRIVATE KEY" | "DSA PRIVATE KEY" => {
            Some(("it has the older form of its algorithm", CONVERT))
        }
        "OPENSSH PRIVATE KEY" => Some((
            "it is a key for SSH, which should not sign messages",
            "make a new key",
        )),
        "PUBLIC KEY" => Some(("it is a public key, which can only verify", "")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crosstalk_envelope::Algorithm;

    fn never() -> io::Result<Zeroizing<String>> {
        panic!("nothing to ask for")
    }

    fn says(word: &str) -> impl FnOnce() -> io::Result<Zeroizing<String>> {
        let word = Zeroizing::new(word.to_owned());
        || Ok(word)
    }

    #[test]
    fn encrypted_key_opens() {
        for algorithm in Algorithm::ALL {
            let key = PrivateKey::generate(algorithm).unwrap();
            let plain = seal(&key, None).unwrap();
            assert!(!is_encrypted(&plain).unwrap());
            assert_eq!(open(&plain, never).unwrap().public(), key.public());
            let sealed = seal(&key, Some("geheim")).unwrap();
            assert!(is_encrypted(&sealed).unwrap());
            let opened = open(&sealed, says("geheim")).unwrap();
            assert_eq!(opened.public(), key.public());
            let wrong = open(&sealed, says("Geheim")).unwrap_err();
            assert!(matches!(wrong, KeyFileError::WrongPassphrase { .. }));
            // Salts differ, and so does all of the rest.
            assert_ne!(seal(&key, Some("geheim")).unwrap(), sealed);
        }
        let key = PrivateKey::generate(Algorithm::Ed25519).unwrap();
        let empty = seal(&key, Some("")).unwrap_err();
        assert!(matches!(empty, KeyFileError::EmptyPassphrase));
    }

    #[test]
    fn one_block_is_read_whatever_is_around_it() {
        let key = PrivateKey::generate(Algorithm::Ed25519).unwrap();
        let pem = seal(&key, None).unwrap();
        let crlf = pem.replace('\n', "\r\n");
        let indented = pem.replace('\n', "\n  ");
        for text in [format!("A key\n\n{crlf}bye"), format!("  {indented}")] {
            assert_eq!(open(&text, never).unwrap().public(), key.public());
        }
        let cut = pem.replace("-----END PRIVATE KEY-----\n", "");
        let short = pem.replace("-----BEGIN", "----BEGIN");
        let public = key.public().to_pem();
        let other = pem.replace("PRIVATE", "EC PRIVATE");
        let damaged = pem.replace("KEY-----\nM", "KEY-----\n*");
        for (text, words) in [
            (pem.repeat(2), "more than one"),
            (cut, "cut off"),
            (short, "no PEM block"),
            (public, "only verify"),
            (other, "openssl pkcs8"),
            (damaged, "damaged"),
        ] {
            let fault = open(&text, never).unwrap_err().to_string();
            assert!(fault.contains(words), "{words}: {fault}");
        }
    }

    #[test]
    fn parameters_that_would_keep_the_machine_busy_are_refused() {
        let salt = [1; 16];
        let scheme = |n, r, p| {
            let cost = scrypt::Params::new(LOG_N, R, P).unwrap();
            let mut it = pbes2::ScryptParams::from_params_and_salt(cost, &salt).unwrap();
            (it.cost_parameter, it.block_size, it.parallelization) = (n, r, p);
            EncryptionScheme::from(pbes2::Parameters {
                kdf: it.into(),
                encryption: pbes2::EncryptionScheme::Aes256Cbc { iv: [0; 16] },
            })
        };
        for (n, r, p) in [(1 << 14, 8, 5), (1 << 17, 8, 1), (2, 1, 1)] {
            assert!(require_bearable(&scheme(n, r, p)).is_ok(), "{n} {r} {p}");
        }
        for (n, r, p) in [
            (0, 8, 1),
            (1, 8, 1),
            (3, 8, 1),
            (1 << 14, 0, 1),
            (1 << 14, 8, 0),
            (1 << 19, 8, 1),
            (1 << 24, 8, 1),
            (1 << 63, 8, 1),
            (1 << 14, 8, u16::MAX),
        ] {
            assert!(require_bearable(&scheme(n, r, p)).is_err(), "{n} {r} {p}");
        }
    }
}
