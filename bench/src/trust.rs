//! What signing and verifying an envelope cost beside the bare operation of the crate that does the mathematics.

use crate::measure::{Subject, measure};
use crate::subject::ENVELOPE;
use crate::{ROUND, goal};
use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::{
    Algorithm, Document, PrivateKey, PublicKey, Reading, Timestamp, authenticate, scan,
};
use crosstalk_protocol::{KeyStanding, KnownKey, Origin, Trust, VerifyContext, verify};
use ed25519_dalek::Signer as _;
use std::hint::black_box;

const PKID: &str = "kalle@example.com";
const NOW: Timestamp = Timestamp::from_millis(1_763_208_000_000);
const BATCH: usize = 64;

/// Prints the table.
pub fn run() {
    for algorithm in Algorithm::ALL {
        if let Some(bench) = Bench::new(algorithm) {
            bench.print();
        }
    }
    batch();
}

struct Bench {
    algorithm: Algorithm,
    key: PrivateKey,
    /// The same key without our code around it.
    bare: Bare,
    signed: String,
    signature: [u8; 64],
}

enum Bare {
    Ed25519(Box<ed25519_dalek::SigningKey>),
    Secp256r1(Box<p256::ecdsa::SigningKey>),
}

impl Bare {
    fn sign(&self, bytes: &[u8]) {
        match self {
            Self::Ed25519(key) => {
                black_box(key.sign(black_box(bytes)));
            }
            Self::Secp256r1(key) => {
                let signature: p256::ecdsa::Signature = key.sign(black_box(bytes));
                black_box(signature);
            }
        }
    }

    fn verify(&self, bytes: &[u8], signature: &[u8]) -> bool {
        match self {
            Self::Ed25519(key) => ed25519_dalek::Signature::from_slice(signature).is_ok_and(|s| {
                key.verifying_key()
                    .verify_strict(black_box(bytes), &s)
                    .is_ok()
            }),
            Self::Secp256r1(key) => {
                use p256::ecdsa::signature::Verifier as _;
                p256::ecdsa::Signature::from_slice(signature)
                    .is_ok_and(|s| key.verifying_key().verify(black_box(bytes), &s).is_ok())
            }
        }
    }
}

impl Bench {
    fn new(algorithm: Algorithm) -> Option<Self> {
        let seed = [7; 32];
        let key = PrivateKey::from_seed(algorithm, &seed).ok()?;
        let bare = match algorithm {
            Algorithm::Ed25519 => {
                Bare::Ed25519(Box::new(ed25519_dalek::SigningKey::from_bytes(&seed)))
            }
            Algorithm::Secp256r1 => {
                Bare::Secp256r1(Box::new(p256::ecdsa::SigningKey::from_slice(&seed).ok()?))
            }
        };
        let signed = sign(&key, ENVELOPE)?;
        let signature = key.sign(ENVELOPE.as_bytes());
        Some(Self {
            algorithm,
            key,
            bare,
            signature,
            signed,
        })
    }

    fn print(&self) {
        let (public, trust) = (self.key.public(), trust(self.key.public()));
        let mut subjects = [
            // The floor is the operation on the text of the envelope, as somebody would sign a file.
            Subject::new("bare signature (floor)", || {
                self.bare.sign(ENVELOPE.as_bytes())
            }),
            Subject::new("parse + sign", || {
                black_box(sign(&self.key, black_box(ENVELOPE)));
            }),
            Subject::new("bare verification (floor)", || {
                black_box(self.bare.verify(ENVELOPE.as_bytes(), &self.signature));
            }),
            Subject::new("parse + verify", || {
                black_box(is_verified(&self.signed, &public));
            }),
            Subject::new("paste + trust + verdict", || {
                black_box(is_trusted(&self.signed, &trust));
            }),
        ];
        let times = measure(&mut subjects, 100, ROUND);
        let [bare_sign, sign, bare_verify, verify, verdict] = times.as_slice() else {
            return;
        };
        println!(
            "\n{}: an envelope of {} bytes, signed {}\n",
            self.algorithm,
            ENVELOPE.len(),
            self.signed.len()
        );
        println!("{:<28} {:>9} {:>9}", "", "ns", "× floor");
        for (subject, (time, floor)) in subjects.iter().zip([
            (bare_sign, bare_sign),
            (sign, bare_sign),
            (bare_verify, bare_verify),
            (verify, bare_verify),
            (verdict, bare_verify),
        ]) {
            println!("{:<28} {time:>9.0} {:>9.2}", subject.name, time / floor);
        }
        println!();
        goal(
            "parse + sign ÷ bare signature",
            sign / bare_sign,
            "at most",
            1.12,
        );
        goal(
            "parse + verify ÷ bare verification",
            verify / bare_verify,
            "at most",
            1.05,
        );
    }
}

fn sign(key: &PrivateKey, text: &str) -> Option<String> {
    let document = Document::parse(text, Reading::Strict);
    Signer {
        key,
        pkid: PKID,
        at: NOW,
        key_block: &[],
    }
    .sign(&document)
    .ok()
}

fn is_verified(text: &str, key: &PublicKey) -> bool {
    let document = Document::parse(black_box(text), Reading::Strict);
    authenticate(&document, key).is_ok_and(|a| a.verified().is_some())
}

fn is_trusted(text: &str, trust: &Trust) -> bool {
    let found = scan(black_box(text), Reading::Paste);
    let mut verdicts = found
        .documents
        .iter()
        .map(|d| verify(d, trust, &VerifyContext::at(NOW)));
    verdicts.all(|v| v.verified().is_some())
}

fn trust(key: PublicKey) -> Trust {
    let mut trust = Trust::default();
    // The key is not denied, and nothing else is known: the pin holds.
    let _ = trust.pin(KnownKey {
        id: PKID.to_owned(),
        key,
        since: NOW,
        how: Origin::Manual,
        by: None,
        senders: Vec::new(),
        standing: KeyStanding::Active,
        credential: None,
    });
    trust
}

/// The batch verification of the crate, which is not strict and so is only reported.
fn batch() {
    let keys: Vec<_> = (1..=BATCH as u8)
        .map(|n| ed25519_dalek::SigningKey::from_bytes(&[n; 32]))
        .collect();
    let messages: Vec<Vec<u8>> = (0..BATCH)
        .map(|n| format!("{n}: {ENVELOPE}").into_bytes())
        .collect();
    let signatures: Vec<_> = keys.iter().zip(&messages).map(|(k, m)| k.sign(m)).collect();
    let publics: Vec<_> = keys
        .iter()
        .map(ed25519_dalek::SigningKey::verifying_key)
        .collect();
    let texts: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    let mut subjects = [
        Subject::new("64 one by one, strict", || {
            for ((key, message), signature) in publics.iter().zip(&texts).zip(&signatures) {
                black_box(key.verify_strict(message, signature).is_ok());
            }
        }),
        Subject::new("64 as a batch, not strict", || {
            black_box(ed25519_dalek::verify_batch(&texts, &signatures, &publics).is_ok());
        }),
    ];
    let times = measure(&mut subjects, 20, ROUND);
    let [single, batch] = times.as_slice() else {
        return;
    };
    println!("\n{:<28} {:>9} {:>9}", "ed25519", "ns each", "ratio");
    for (subject, time) in subjects.iter().zip(&times) {
        println!(
            "{:<28} {:>9.0} {:>9.2}",
            subject.name,
            time / BATCH as f64,
            time / single
        );
    }
    println!(
        "\nbatch of 64 ÷ one by one: {:.2} (reported; batches accept what strict verification refuses)",
        batch / single
    );
}
