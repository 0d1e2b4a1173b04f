//! Personal data in texts: what is found, what is spared, and what holds for any text.

mod envelope;
mod national;
mod property;

use crosstalk_protocol::redact::{PiiKind, RedactionRules, find, redact};

/// Each text becomes the other, and stays so.
fn becomes(rules: &RedactionRules, cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let redacted = redact(text, rules);
        assert_eq!(redacted.text, *expected, "{text}");
        assert_eq!(redact(expected, rules).text, *expected, "again: {text}");
    }
}

fn stays(rules: &RedactionRules, texts: &[&str]) {
    for text in texts {
        assert_eq!(redact(text, rules).text, *text);
    }
}

#[test]
fn mail_addresses() {
    becomes(
        &RedactionRules::default(),
        &[
            ("jane@example.com", "[EMAIL]"),
            ("<Jane.Doe+news@mail.example.co.uk>", "<[EMAIL]>"),
            ("Write to jane@example.com.", "Write to [EMAIL]."),
            (
                "a@example.com,b@example.com;c@example.com",
                "[EMAIL],[EMAIL];[EMAIL]",
            ),
            (
                "mailto:jane@example.com?subject=x",
                "mailto:[EMAIL]?subject=x",
            ),
            ("email:support@example.com", "email:[EMAIL]"),
            (
                "human://dr.smith@clinic.example/inbox",
                "human://[EMAIL]/inbox",
            ),
            ("jörg@müller.example", "[EMAIL]"),
            ("jo\u{308}rg@mu\u{308}ller.example", "[EMAIL]"),
            ("邮箱@例子.公司", "[EMAIL]"),
            ("o'brien@example.ie's", "[EMAIL]'s"),
            ("'jane@example.com'", "'[EMAIL]'"),
            ("\"jane doe\"@example.com", "[EMAIL]"),
            ("jane@[192.0.2.1]", "[EMAIL]"),
            ("https://user:secret@host.example/", "https://user:[EMAIL]/"),
            ("jane@host.example.com:notes.txt", "[EMAIL]:notes.txt"),
            ("jane\u{200b}@exam\u{ad}ple.com", "[EMAIL]"),
            ("ｊａｎｅ＠ｅｘａｍｐｌｅ．ｃｏｍ", "[EMAIL]"),
            ("jane@example。com", "[EMAIL]"),
            ("JANE@EXAMPLE.COM", "[EMAIL]"),
            ("jane@example.xn--p1ai", "[EMAIL]"),
            ("jane@example.com..", "[EMAIL].."),
            ("--jane@example.com--", "--[EMAIL]--"),
            ("1234@example.com", "[EMAIL]"),
            ("_@example.com", "[EMAIL]"),
        ],
    );
    stays(
        &RedactionRules::default(),
        &[
            "@jane",
            "jane@",
            "jane@localhost",
            "a @ b.com",
            "user@host:path",
            "git@github.com:org/repo.git",
            "lodash@4.17.21",
            "react@18.2.0-rc.1",
            "icon@2x.png",
            "@app.route",
            "actions/checkout@v4",
            "x@y.z",
            "50@0.99",
            "@@@@",
            "jane@.com",
            "jane@example..com",
            "a@b",
        ],
    );
}

#[test]
fn phone_numbers() {
    becomes(
        &RedactionRules::default(),
        &[
            ("+1 (555) 010-0199", "[PHONE]"),
            ("+15550100199", "[PHONE]"),
            ("+49 30 901820", "[PHONE]"),
            ("+49 (0)30 901820.", "[PHONE]."),
            ("(+44) 20 7946 0018", "([PHONE]"),
            ("+44-20-7946-0018", "[PHONE]"),
            ("+33.1.23.45.67.89", "[PHONE]"),
            ("tel:+1-555-010-0199", "tel:[PHONE]"),
            ("tel:5550100199", "tel:[PHONE]"),
            ("Tel.: 030 901820", "Tel.: [PHONE]"),
            ("Phone: 5550100199", "Phone: [PHONE]"),
            ("téléphone 0123456789", "téléphone [PHONE]"),
            ("Fax (030) 12345", "Fax [PHONE]"),
            ("(555) 010-0100", "[PHONE]"),
            ("(555)010-0100", "[PHONE]"),
            ("555-010-0199", "[PHONE]"),
            ("555.010.0199", "[PHONE]"),
            ("555 010 0199", "[PHONE]"),
            ("1-555-010-0199", "[PHONE]"),
            ("1 (555) 010-0199", "[PHONE]"),
            ("call 555-010-0199 12 times", "call [PHONE] 12 times"),
            ("020 7946 0018", "[PHONE]"),
            ("07700 900123", "[PHONE]"),
            ("(0171) 1234567", "[PHONE]"),
            ("0171/1234567", "[PHONE]"),
            ("0171 / 123 45 67", "[PHONE]"),
            ("030-901820", "[PHONE]"),
            ("01 23 45 67 89", "[PHONE]"),
            ("01.23.45.67.89", "[PHONE]"),
            ("02 1234 5678", "[PHONE]"),
            ("0049 30 901820", "[PHONE]"),
            ("2025-10-09 555-010-0199", "2025-10-09 [PHONE]"),
            ("＋４９ ３０ ９０１８２０", "[PHONE]"),
            ("+49\u{200b}30\u{ad}9018\u{2060}20", "[PHONE]"),
            ("555–010–0199", "[PHONE]"),
            ("+٤٩ ٣٠ ٩٠١٨٢٠", "[PHONE]"),
            ("+49\u{a0}30\u{202f}901820", "[PHONE]"),
        ],
    );
    stays(
        &RedactionRules::default(),
        &[
            "5550100199",
            "030901820",
            "1760025600000",
            "+02:00",
            "+0200",
            "UTC+1 2025",
            "12-34-56",
            "1,234,567",
            "2025-10-09T16:00:00+01:00",
            "09.10.2025",
            "10/09/2025",
            "0.123 456 789",
            "0101 1010 0101",
            "1 2 3 4 5 6 7",
            "0-306-40615-2",
            "978-3-16-148410-0",
            "ORD-0012-3456-789",
            "#0123-456789",
            "555-010-019",
            "155-010-0199",
            "555-010-01991",
            "10:00 - 12:00",
            "$1,234.56",
            "1.234.567,89 €",
            "00 11 22 33 44",
            "01 02 03 04 05 06",
            "a+4930901820",
            "+4930",
            "iPhone 15 2024",
            "200 300 4000 50",
            "010.001.002.003",
            "+1234567890123456",
            "12345-678-9012-34",
            "lot 0171-1234567-b",
        ],
    );
}

#[test]
fn cards() {
    becomes(
        &RedactionRules::default(),
        &[
            ("4111111111111111", "[CARD-XXXX-1111]"),
            ("4111 1111 1111 1111", "[CARD-XXXX-1111]"),
            ("4111-1111-1111-1111.", "[CARD-XXXX-1111]."),
            ("5500 0000 0000 0004", "[CARD-XXXX-0004]"),
            ("2223003122003222", "[CARD-XXXX-3222]"),
            ("3782 822463 10005", "[CARD-XXXX-0005]"),
            ("3056 930902 5904", "[CARD-XXXX-5904]"),
            ("6011111111111117", "[CARD-XXXX-1117]"),
            ("3530111333300000", "[CARD-XXXX-0000]"),
            ("4222222222222", "[CARD-XXXX-2222]"),
            ("6304000000000000", "[CARD-XXXX-0000]"),
            ("6799990100000000019", "[CARD-XXXX-0019]"),
            (
                "4111 1111 1111 1111 12/26 123",
                "[CARD-XXXX-1111] 12/26 123",
            ),
            ("4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "[CARD-XXXX-1111]"),
            ("４１１１ １１１１ １１１１ １１１１", "[CARD-XXXX-1111]"),
            ("4111\u{200b}1111\u{ad}1111\u{feff}1111", "[CARD-XXXX-1111]"),
            ("4111 - 1111 - 1111 - 1111", "[CARD-XXXX-1111]"),
            ("card-4111111111111111", "card-[CARD-XXXX-1111]"),
        ],
    );
    stays(
        &RedactionRules::default(),
        &[
            "4111111111111112",
            "4111 1111 1111 1112",
            "0000000000000000",
            "1111111111111117",
            "9781861972712",
            "411111111111111",
            "41111111111111111111",
            "1760025600000",
            "a4111111111111111",
            "4111111111111111x",
            "4006381333931",
            "4111-1111-1111",
            "12345678-1234-1234-1234-123456789012",
            "4111,1111,1111,1111",
            "7992739871300000",
        ],
    );
}

#[test]
fn account_numbers() {
    becomes(
        &RedactionRules::default(),
        &[
            ("DE89 3704 0044 0532 0130 00", "[IBAN]"),
            ("DE89370400440532013000", "[IBAN]"),
            ("de89370400440532013000", "[IBAN]"),
            ("IBAN: GB29 NWBK 6016 1331 9268 19.", "IBAN: [IBAN]."),
            ("FR14 2004 1010 0505 0001 3M02 606", "[IBAN]"),
            ("NL91ABNA0417164300", "[IBAN]"),
            ("NO93 8601 1117 947", "[IBAN]"),
            ("CH93-0076-2011-6238-5295-7", "[IBAN]"),
            ("MT84 MALT 0110 0001 2345 MTLC AST0 01S", "[IBAN]"),
            ("ＤＥ８９ 3704 0044 0532 0130 00", "[IBAN]"),
            ("DE89\u{200b}370400440532013000", "[IBAN]"),
            ("DE89 3704 0044 0532 0130 00 and more", "[IBAN] and more"),
        ],
    );
    stays(
        &RedactionRules::default(),
        &[
            "DE88 3704 0044 0532 0130 00",
            "DE8937040044053201300",
            "DE893704004405320130001",
            "XX89370400440532013000",
            "DE89",
            "XDE89370400440532013000",
            "01K74V6R0074G0T7MAHPXVDNXW",
        ],
    );
}

#[test]
fn addresses_of_machines() {
    becomes(
        &RedactionRules::default(),
        &[
            ("192.0.2.7", "[IP]"),
            ("from 10.0.0.1:8080.", "from [IP]:8080."),
            ("192.0.2.0/24", "[IP]/24"),
            ("http://192.0.2.7/x", "http://[IP]/x"),
            ("10.0.0.1-10.0.0.9", "[IP]-[IP]"),
            ("IP:192.0.2.7", "IP:[IP]"),
            ("= :192.0.2.7", "= :[IP]"),
            ("2001:db8::1", "[IP]"),
            ("[2001:db8::1]:443", "[[IP]]:443"),
            ("2001:0db8:0000:0000:0000:ff00:0042:8329", "[IP]"),
            ("fe80::1%eth0", "[IP]"),
            ("::ffff:192.0.2.7", "[IP]"),
            ("2001:DB8::1.", "[IP]."),
            ("2001:db8::1: refused", "[IP]: refused"),
            ("2001:db8::/32", "[IP]/32"),
            ("１９２.０.２.７", "[IP]"),
            ("192.0\u{200b}.2.7", "[IP]"),
            ("192。0。2。7", "[IP]"),
        ],
    );
    stays(
        &RedactionRules::default(),
        &[
            "v1.2.3.4",
            "version 1.2.3.4",
            "Version: 1.2.3.4",
            "release 10.0.0.1",
            "§ 1.2.3.4",
            "section 4.3.2.1",
            "1.2.3",
            "1.2.3.4.5",
            "256.1.1.1",
            "192.0.2.07",
            "foo-1.2.3.4",
            "1.2.3.4-beta",
            "1.2.3.4.tar.gz",
            "127.0.0.1",
            "0.0.0.0",
            "255.255.255.0",
            "255.255.255.255",
            "::1",
            "::",
            "a::b",
            "std::fmt::Display",
            "12:34:56",
            "2025-10-09T16:00:00Z",
            "00:1a:2b:3c:4d:5e",
            "dead::beef",
            "x1.2.3.4",
            "ab:cd:ef:01:23:45:67:89:ab:cd:ef:01",
            "1::2::3",
            "key: value",
        ],
    );
}

#[test]
fn names() {
    let rules = RedactionRules::default().with_names([
        "Jane Doe",
        "Jane",
        "kalle",
        "José",
        "Jürgen Groß",
        "李雷",
        "Anna-Lena",
        "",
        "X",
        "O'Brien",
        "김철수",
    ]);
    becomes(
        &rules,
        &[
            ("Jane Doe", "[NAME]"),
            ("jane  doe", "[NAME]"),
            ("JANE\nDOE", "[NAME]"),
            ("Jane\n  Doe", "[NAME]"),
            ("Jane\n\nDoe", "[NAME]\n\nDoe"),
            ("Jane's and Jane’s", "[NAME]'s and [NAME]’s"),
            ("(Kalle)", "([NAME])"),
            ("Jane-Marie", "[NAME]-Marie"),
            ("Jose\u{301} and JOSÉ", "[NAME] and [NAME]"),
            ("jürgen GROß", "[NAME]"),
            ("我叫李雷。", "我叫[NAME]。"),
            ("김철수는", "[NAME]는"),
            ("anna-lena, anna–lena", "[NAME], [NAME]"),
            ("O’Brien", "[NAME]"),
            ("Ja\u{200b}ne", "[NAME]"),
            ("Ｊａｎｅ", "[NAME]"),
            ("jane@example.com", "[EMAIL]"),
        ],
    );
    stays(
        &rules,
        &[
            "Janet", "Jose", "xJane", "jane_doe", "X", "Jane2", "Doe", "kalles", "[NAME]",
        ],
    );
    stays(&RedactionRules::default(), &["Jane Doe"]);
}

#[test]
fn names_that_are_words_of_placeholders_leave_them_alone() {
    let rules = RedactionRules::default().with_names(["Email", "Card", "XXXX", "IP", "version"]);
    becomes(
        &rules,
        &[
            (
                "[EMAIL] [CARD-XXXX-1234] [IP]",
                "[EMAIL] [CARD-XXXX-1234] [IP]",
            ),
            ("Email me", "[NAME] me"),
            // The word that spared the number is a name itself.
            ("version 1.2.3.4", "[NAME] [IP]"),
        ],
    );
}

#[test]
fn overlapping_finds_are_joined() {
    let rules = RedactionRules::default().with_names(["Jane Doe", "Doe Smith", "example"]);
    becomes(
        &rules,
        &[
            ("Jane Doe Smith", "[NAME]"),
            ("x@example.com", "[EMAIL]"),
            ("::ffff:192.0.2.7", "[IP]"),
            ("tel:+4930901820", "tel:[PHONE]"),
        ],
    );
}

#[test]
fn other_text_is_not_redacted() {
    stays(
        &RedactionRules::default(),
        &[
            "[[CLAUDE→CHATGPT v1]]",
            "01K74V6R0074G0T7MAHPXVDNXW",
            "0199a3c2-7e1b-7d4f-9c3a-5b2e8f1d6a70",
            "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
            "commit 958302e1760025600000deadbeef",
            "session: 2025-10-09T16Z abc123",
            "3 items at 19.99 make 59.97 (total 1,234.56)",
            "https://example.com/orders/2024-000123?page=2",
            "ISBN 978-3-16-148410-0, 0-306-40615-2",
            "Invoice 2024-000123, order 100200300",
            "9am-5pm, 10:30:00.123, 50%",
            "ed25519:pk=T9CZzNR9eJPf6ewkQU7LDZtUICMqrTDZHEZb4zy+ZcQ=",
            "fn main() { a::b::c(); x[0..10] }",
            "1 2 3\n4 5 6\n7 8 9",
        ],
    );
}

#[test]
fn kinds_can_be_chosen() {
    let text = "jane@example.com 192.0.2.7";
    let rules = RedactionRules::default();
    assert_eq!(
        redact(text, &rules.clone().only(&[PiiKind::Ip])).text,
        "jane@example.com [IP]"
    );
    assert_eq!(
        redact(text, &rules.without(&[PiiKind::Ip])).text,
        "[EMAIL] 192.0.2.7"
    );
}

#[test]
fn a_long_text_is_looked_at_in_parts() {
    let line = "Ask jane@example.com or\nJane\n  Doe.\n\n";
    let text = line.repeat(5_000);
    let rules = RedactionRules::default().with_names(["Jane Doe"]);
    let found = find(&text, &rules);
    assert_eq!(found.len(), 10_000);
    assert_eq!(
        redact(&text, &rules).text,
        "Ask [EMAIL] or\n[NAME].\n\n".repeat(5_000)
    );
    for one in found {
        let value = &text[one.span];
        assert!(
            matches!(value, "jane@example.com" | "Jane\n  Doe"),
            "{value}"
        );
    }
}
