//! Keys are read by OpenSSL, and OpenSSL's keys are read here.

use crate::{Place, at, never, new_key, says};
use crosstalk_envelope::{Algorithm, PrivateKey, PublicKey};
use crosstalk_store::{KeyFileError, import};
use std::path::Path;
use std::process::Command;

fn openssl(arguments: &[&str]) -> String {
    let output = Command::new("openssl").args(arguments).output();
    let output = output.expect("openssl is needed for this test: `cargo xtask test` installs it");
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {complaint}");
    String::from_utf8(output.stdout).unwrap()
}

/// The public key that OpenSSL finds in a file.
fn public_of(file: &Path, passphrase: &str) -> PublicKey {
    let pass = format!("pass:{passphrase}");
    let file = file.to_str().unwrap();
    let pem = openssl(&["pkey", "-in", file, "-passin", &pass, "-pubout"]);
    PublicKey::from_pem(&pem).unwrap()
}

#[test]
fn openssl_reads_what_is_written_here() {
    let place = Place::new();
    let store = place.store();
    for algorithm in Algorithm::ALL {
        let key = PrivateKey::generate(algorithm).unwrap();
        let id = algorithm.as_str();
        let stored = store.create(id, &key, None, at(0)).unwrap();
        assert_eq!(public_of(stored.path(), ""), key.public());
        store.set_passphrase(&stored, &key, Some("geheim")).unwrap();
        assert_eq!(public_of(stored.path(), "geheim"), key.public());
        let backup = place.path().join(id);
        store.backup(&stored, &key, &backup, "sicher").unwrap();
        assert_eq!(public_of(&backup, "sicher"), key.public());
    }
}

#[test]
fn keys_of_openssl_can_be_read() {
    let place = Place::new();
    let ed25519 = ["genpkey", "-algorithm", "ed25519"].as_slice();
    let p256 = [
        "genpkey",
        "-algorithm",
        "EC",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
    ]
    .as_slice();
    for make in [ed25519, p256] {
        let pem = openssl(make);
        let file = place.path().join("plain.pem");
        std::fs::write(&file, &pem).unwrap();
        let imported = import(&pem, never).unwrap();
        assert_eq!(imported.key.public(), public_of(&file, ""));
        assert_eq!(imported.facts, None);
        let file = file.to_str().unwrap();
        for way in [["-v2", "aes-256-cbc"].as_slice(), &["-scrypt"]] {
            let mut arguments = vec!["pkcs8", "-topk8", "-in", file, "-passout", "pass:geheim"];
            arguments.extend(way);
            let sealed = openssl(&arguments);
            let opened = import(&sealed, says("geheim")).unwrap();
            assert_eq!(opened.key.public(), imported.key.public());
            let fault = import(&sealed, says("falsch")).unwrap_err();
            assert!(
                matches!(fault, KeyFileError::WrongPassphrase { .. }),
                "{fault}"
            );
        }
    }
}

#[test]
fn keys_of_other_kinds_are_refused_with_a_way_out() {
    let fault = |text: &str| import(text, says("geheim")).unwrap_err().to_string();
    let rsa = openssl(&[
        "genpkey",
        "-algorithm",
        "RSA",
        "-pkeyopt",
        "rsa_keygen_bits:1024",
    ]);
    assert!(
        fault(&rsa).contains("ed25519 or secp256r1"),
        "{}",
        fault(&rsa)
    );
    let older = openssl(&["ecparam", "-name", "prime256v1", "-genkey"]);
    assert!(
        fault(&older).contains("openssl pkcs8 -topk8"),
        "{}",
        fault(&older)
    );
    let place = Place::new();
    let key = place
        .store()
        .create("alice", &new_key(), None, at(0))
        .unwrap();
    let file = key.path().to_str().unwrap();
    let old = [
        "pkcs8",
        "-topk8",
        "-v2",
        "aes-256-cbc",
        "-v2prf",
        "hmacWithSHA1",
        "-in",
        file,
    ];
    let old = openssl(&[&old[..], &["-passout", "pass:geheim"]].concat());
    assert!(
        fault(&old).contains("openssl pkcs8 -topk8"),
        "{}",
        fault(&old)
    );
}
