//! National numbers: right ones, and the same with another check.

use super::{becomes, stays};
use crosstalk_protocol::redact::{RedactionRules, redact};

/// Numbers that need no label, and what is written around them.
#[test]
fn numbers_with_a_strong_check_need_no_label() {
    for number in [
        "123-45-6789",
        "078-05-1120",
        "987-65-4320",
        "AB 12 34 56 C",
        "AB123456C",
        "86 095 742 719",
        "1 85 05 78 006 084 91",
        "185057800608491",
        "12345678Z",
        "12345678-Z",
        "X1234567L",
        "RSSMRA85T10A562S",
        "rssmra85t10a562s",
        "811218-9876",
        "19811218-9876",
        "811218+9876",
        "131052-308T",
        "131052A308T",
        "01010750160",
        "756.9217.0769.85",
        "7569217076985",
        "123.456.789-09",
        "85.07.30-033.28",
        "736028/5163",
        "11010519491231002X",
        "900101-1234567",
        "S1234567D",
        "F1234567N",
    ] {
        becomes(
            &RedactionRules::default(),
            &[(number, "[NIN]"), (&format!("is {number}."), "is [NIN].")],
        );
    }
}

#[test]
fn another_check_is_no_number() {
    stays(
        &RedactionRules::default(),
        &[
            "000-45-6789",
            "666-45-6789",
            "900-45-6789",
            "123-00-6789",
            "123-45-0000",
            "DA123456C",
            "AO123456C",
            "BG123456A",
            "AB123456E",
            "ab123456c",
            "86 095 742 710",
            "185057800608492",
            "12345678A",
            "12345678z",
            "X1234567M",
            "RSSMRA85T10A562T",
            "811218-9875",
            "811318-9876",
            "131052-308U",
            "321052-308T",
            "01010750161",
            "756.9217.0769.84",
            "123.456.789-00",
            "111.111.111-11",
            "85.07.30-033.29",
            "736028/5162",
            "110105194912310021",
            "901301-1234567",
            "S1234567A",
            "1-123-45-6789",
            "123-45-67890",
            "123-45-6789-1",
            "internationalize",
            "123456782",
            "44051401359",
            "2341 2341 2346",
            "111222333",
            "010190-1234",
        ],
    );
}

#[test]
fn numbers_with_a_weak_check_need_a_label() {
    for (label, number) in [
        ("SSN:", "123456789"),
        ("social security number", "123 45 6789"),
        ("BSN", "123456782"),
        ("bsn-nummer is", "111222333"),
        ("PESEL:", "44051401359"),
        ("Steuer-ID", "86095742719"),
        ("IdNr.", "86095742719"),
        ("national insurance", "ab123456c"),
        ("personnummer", "8112189876"),
        ("CPR", "010190-1234"),
        ("CPF", "12345678909"),
        ("Aadhaar", "2341 2341 2346"),
        ("SIN:", "130 692 544"),
        ("rijksregisternummer", "85073003328"),
        ("CNP", "1800101221144"),
        ("TC kimlik", "10000000146"),
        ("ID number", "8001015009087"),
        ("TFN", "123 456 782"),
        ("PPS", "1234567T"),
        ("PPSN", "1234567FA"),
        ("NIF", "123456789"),
        ("SVNR", "1237 010180"),
        ("OIB", "94577403194"),
        ("DNI", "12345678z"),
    ] {
        let with = |number: &str| format!("{label} {number}");
        let text = redact(&with(number), &RedactionRules::default()).text;
        assert_eq!(text, with("[NIN]"), "{number}");
        // Without the label, and with the label on another line, it is any number.
        for text in [number.to_owned(), format!("{label}\n{number}")] {
            assert!(
                !redact(&text, &RedactionRules::default())
                    .text
                    .contains("[NIN]"),
                "{text}"
            );
        }
        let behind = format!("{number} ({})", label.trim_end_matches([':', '.']));
        if !label.ends_with(':') {
            assert!(
                redact(&behind, &RedactionRules::default())
                    .text
                    .starts_with("[NIN] ("),
                "{behind}"
            );
        }
    }
}

#[test]
fn tricks_hide_no_number() {
    becomes(
        &RedactionRules::default(),
        &[
            ("１２３-４５-６７８９", "[NIN]"),
            ("123\u{200b}-45-6789", "[NIN]"),
            ("123‑45‑6789", "[NIN]"),
            ("B\u{ad}SN 1234\u{2060}56782", "B\u{ad}SN [NIN]"),
        ],
    );
}
