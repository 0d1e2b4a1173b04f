//! A relay that sends mail to a real mail server: nothing is lost when it is killed, and its set-up can be tested.

use super::{Person, Relay};
use crosstalk_testing::knot::{Knot, Zone};
use crosstalk_testing::postfix::Postfix;
use crosstalk_testing::tier;
use crosstalk_testing::wait::wait_until;
use serde_json::Value;
use std::collections::BTreeSet;

fn write_config(person: &Person, postfix: &Postfix, more: &str) -> String {
    let data = person.home.path("relay");
    std::fs::create_dir_all(&data).unwrap();
    let address = postfix.address();
    let config = format!(
        "[retry]\nfirst_seconds = 1\nlongest_seconds = 1\nattempts = 1000\nfailures = 1000\n[email]\ndomain = \"relay.test\"\n\
         [email.out]\nhost = \"{}\"\nport = {}\n{more}\n[[route]]\nto = \"email:*\"\nby = \"email\"\ncover = true\n",
        address.ip(),
        address.port()
    );
    std::fs::write(data.join("relay.toml"), config).unwrap();
    data.to_str().unwrap().to_owned()
}

fn message_ids(postfix: &Postfix) -> Vec<String> {
    let mails = postfix.mails("bert").into_iter();
    let texts = mails.map(|mail| String::from_utf8(mail).unwrap());
    let id = |text: &String| {
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix("Message-ID: ").map(str::to_owned))
    };
    texts.map(|text| id(&text).unwrap()).collect()
}

#[test]
fn mail_survives_a_relay_that_is_killed() {
    let count = tier::size(4, 40);
    let kalle = Person::new("mail-kill", "kalle");
    let postfix = Postfix::start(&["bert"], "");
    let authority = format!("ca_file = \"{}\"", postfix.authority().display());
    write_config(&kalle, &postfix, &authority);
    postfix.set_access("/./ 451 4.7.1 Greylisted, come back later\n");
    let relay = Relay::start(&kalle.home, &[]);
    for number in 0..count {
        let body = format!("Question {number}?");
        kalle.does(&[
            "send",
            "email:bert@people.test",
            &body,
            "--relay",
            &relay.url,
        ]);
    }
    wait_until("the mail server has rejected something for now", || {
        postfix.log().contains("Greylisted")
    });
    relay.signal("KILL");
    drop(relay);
    assert!(message_ids(&postfix).is_empty());
    postfix.set_access("");
    let relay = Relay::start(&kalle.home, &[]);
    wait_until("the first mail is there", || {
        !message_ids(&postfix).is_empty()
    });
    // In the middle of the rest.
    relay.signal("KILL");
    drop(relay);
    let relay = Relay::start(&kalle.home, &[]);
    let unique = || message_ids(&postfix).into_iter().collect::<BTreeSet<_>>();
    wait_until("every mail is there", || unique().len() == count);
    let log = relay.stop();
    // At most the mails of the killed attempts came twice, each as the same mail.
    assert_eq!(unique().len(), count, "{log}");
    assert!(message_ids(&postfix).len() <= count + 4, "{log}");
    let key = kalle.home.path("relay/email.key");
    let mode = std::os::unix::fs::PermissionsExt::mode(&key.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn set_up_of_mail_is_tested_step_by_step() {
    let kalle = Person::new("mail-test", "kalle");
    let postfix = Postfix::start(&["bert"], "");
    let zone = Zone::new("relay.test")
        .record("@ MX 20 backup.relay.test.")
        .record("@ MX 10 mx.relay.test.")
        .txt("@", &["v=spf1 mx -all"])
        .txt("s1._domainkey", &["v=DKIM1; p=MFww"]);
    let knot = Knot::start([zone]);
    let dns = knot.address().to_string();
    let authority = format!("ca_file = \"{}\"", postfix.authority().display());
    let data = write_config(&kalle, &postfix, &authority);
    let words = [
        "email",
        "test",
        "--data",
        &data,
        "--dns",
        &dns,
        "--selector",
        "s1",
    ];
    let run = |more: &[&str]| kalle.run(&[&words[..], more].concat());
    let good = run(&["--to", "bert@people.test", "--json"]);
    assert_eq!(good.code, 0, "{}{}", good.out, good.err);
    let report: Value = serde_json::from_str(&good.out).unwrap();
    assert_eq!(report["schema"], "crosstalk.email-test/1");
    let find = |report: &Value, what: &str| {
        let checks = report["checks"].as_array().unwrap();
        let found = checks.iter().find(|check| check["what"] == what);
        let found = found.unwrap_or_else(|| panic!("{what}: {report}"));
        (
            found["good"].as_bool().unwrap(),
            found["message"].as_str().unwrap().to_owned(),
        )
    };
    for (what, good, words) in [
        ("MX", true, "mx.relay.test, backup.relay.test"),
        ("SPF", true, "v=spf1"),
        ("DMARC", false, "_dmarc.relay.test"),
        ("DKIM", true, "s1._domainkey"),
        ("TLS", true, "valid"),
        (
            "sender",
            true,
            "accepts mail from crosstalk@relay.test to bert@people.test",
        ),
    ] {
        let (is_good, message) = find(&report, what);
        assert!(
            is_good == good && message.contains(words),
            "{what}: {message}"
        );
    }
    // No mail was sent.
    assert!(postfix.mails("bert").is_empty());

    let bad = run(&["--to", "nobody@people.test"]);
    assert_eq!(bad.code, 1, "{}", bad.out);
    let said = format!("{}{}", bad.out, bad.err).replace('\n', " ");
    assert!(
        said.contains("bad  recipient") && said.contains("550 5.1.1") && said.contains("--to"),
        "{said}"
    );

    // A certificate of an authority that the system does not know.
    write_config(&kalle, &postfix, "");
    let bad = run(&["--json"]);
    let report: Value = serde_json::from_str(&bad.out).unwrap();
    let (is_good, message) = find(&report, "TLS");
    assert!(
        bad.code == 1 && !is_good && message.contains("ca_file"),
        "{message}"
    );
}
