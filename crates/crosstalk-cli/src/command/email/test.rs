//! `crosstalk email test`: checks the mail of a relay from the DNS to the mail server, and says what to do about each fault.

use crate::console::{Console, GREEN, RED, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::paragraph::wrap;
use crate::report::{ServeCheckReport, StartCheckReport};
use crate::schema::EMAIL_TEST;
use crate::service::relay::data::DataArgument;
use crate::service::relay::start::runtime;
use clap::Args;
use crosstalk_dns::{Dns, Options};
use crosstalk_email::is_mail_address;
use crosstalk_envelope::Explanation;
use crosstalk_envelope::unicode::escape;
use crosstalk_gateway::imap::{MailboxStep, try_mailbox};
use crosstalk_relay::config::{Email, ImapAccount, MailTls, SmarthostAccount};
use crosstalk_relay::delivery::{MailFault, MailStep, SmtpConnection};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Check the mail of a relay: DNS, TLS, credentials and the mail server
///
/// Looks up MX, SPF, DMARC and DKIM of the domain, connects to the mail server of [email.out], logs in, and asks whether it accepts
/// mail from the relay. Logs in to the mailbox of [email.imap] and opens its folder. No mail is sent, read or changed. Each fault
/// comes with what to do about it.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk email test\n  crosstalk email test --data /var/lib/crosstalk --selector s1\n  crosstalk email test --to ann@acme.example --json\n\nExit codes: 0 mail can be sent and the mailbox be read, 1 they can't, 12 the configuration can't be read."
)]
pub(crate) struct TestMail {
    #[command(flatten)]
    data: DataArgument,
    /// The configuration, instead of relay.toml in the data folder
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Ask whether the mail server accepts mail to this address; else, to the address of the relay
    #[arg(long, value_name = "ADDRESS", value_parser = mail_address)]
    to: Option<String>,
    /// The name of the DKIM key: `s=` in the DKIM-Signature of a mail that your mail server sent
    #[arg(long, value_name = "NAME")]
    selector: Option<String>,
    /// The name server to ask, instead of those of the system
    #[arg(long, value_name = "ADDR:PORT")]
    dns: Option<SocketAddr>,
    /// Print JSON of the form crosstalk.email-test/1
    #[arg(long)]
    json: bool,
}

fn mail_address(text: &str) -> Result<String, String> {
    match is_mail_address(text) {
        true => Ok(text.to_owned()),
        false => Err("this is no mail address".to_owned()),
    }
}

/// The result of one check.
struct MailCheck {
    what: &'static str,
    /// Whether mail can't be sent without it.
    is_needed: bool,
    result: Result<String, Explanation>,
}

impl MailCheck {
    fn advice(what: &'static str, result: Result<String, Explanation>) -> Self {
        let is_needed = false;
        Self {
            what,
            is_needed,
            result,
        }
    }

    fn needed(what: &'static str, result: Result<String, Explanation>) -> Self {
        let is_needed = true;
        Self {
            what,
            is_needed,
            result,
        }
    }
}

impl TestMail {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let data = self.data.folder()?;
        let (config, _) = data.read_config(self.config.as_deref())?;
        let Some(email) = &config.email else {
            return Err(Failure::failed("the relay has no [email] in its configuration")
                .help("add [email] with a `domain`, and [email.out] with the `host` of your mail server, to relay.toml"));
        };
        let dns = match self.dns {
            Some(address) => Dns::server(address, Options::default()),
            None => Dns::system(Options::default()),
        };
        let checks = runtime(Some(1))?.block_on(async {
            let mut checks = match &dns {
                Ok(dns) => self.domain(email, dns).await,
                Err(fault) => vec![MailCheck::advice("name servers", Err(fault.explanation()))],
            };
            if let Some(out) = &email.out {
                checks.extend(self.server(email, out).await);
            } else {
                let missing = Explanation::new(
                    "there is no [email.out], so the relay sends no mail",
                    "add [email.out] with the `host` of your mail server",
                );
                checks.push(MailCheck::advice("mail server", Err(missing)));
            }
            if let Some(imap) = &email.imap {
                checks.push(MailCheck::needed("mailbox", mailbox(imap).await));
            }
            checks
        });
        let is_ready = checks
            .iter()
            .all(|check| check.result.is_ok() || !check.is_needed);
        let exit = if is_ready {
            Exit::SUCCESS
        } else {
            Exit::FAILURE
        };
        if self.json {
            let checks = checks.into_iter().map(report).collect();
            let report = ServeCheckReport {
                ready: is_ready,
                checks,
            };
            console.report(EMAIL_TEST, &report)?;
            return Ok(exit);
        }
        for check in &checks {
            let (word, said) = match &check.result {
                Ok(said) => (styled(GREEN, "good"), said.clone()),
                Err(fault) if check.is_needed => {
                    (format!("{} ", styled(RED, "bad")), sentence(fault))
                }
                Err(fault) => (styled(YELLOW, "warn"), sentence(fault)),
            };
            let said = format!("{}: {}", check.what, escape(&said));
            console.show(&format!("{word} {}\n", wrap(&said, 0, 5)))?;
        }
        Ok(exit)
    }

    /// What the DNS says about the domain: whether answers find their way, and whether others take the mail for spam.
    async fn domain(&self, email: &Email, dns: &Dns) -> Vec<MailCheck> {
        let domain = &email.domain;
        let mx = dns.mail_servers(domain).await;
        let is_direct = email.lmtp.is_some() || email.smtp.is_some() || email.imap.is_some();
        let mx = match mx {
            Ok(servers) if servers.is_empty() => {
                let help = match is_direct {
                    true => {
                        "add an MX record that names your mail server, or correct `domain` of [email]"
                    }
                    false => {
                        "add an MX record, or set `domain` of [email] to the domain of an existing mailbox"
                    }
                };
                Err(Explanation::new(
                    format!("{domain} has no MX record, so that no answer finds its way"),
                    help,
                ))
            }
            Ok(servers) => Ok(format!("mail to {domain} goes to {}", servers.join(", "))),
            Err(reason) => Err(unavailable(&reason)),
        };
        let spf = dns
            .texts_at(domain)
            .await
            .map_err(|reason| unavailable(&reason));
        let spf = spf.and_then(|texts| {
            let found: Vec<&String> = texts.iter().filter(|t| is_tagged(t, "v=spf1")).collect();
            match found.as_slice() {
                [one] if one.trim_end().ends_with("+all") => Err(Explanation::new(
                    format!("the SPF record of {domain} lets every server send mail in its name"),
                    "end it with -all or ~all",
                )),
                [one] => Ok((*one).clone()),
                [] => Err(Explanation::new(
                    format!("{domain} has no SPF record, so that many servers take its mail for spam"),
                    "add a TXT record such as \"v=spf1 mx -all\", with the servers that send your mail",
                )),
                _ => Err(Explanation::new(
                    format!("{domain} has {} SPF records, so that none of them counts", found.len()),
                    "join them into one",
                )),
            }
        });
        let dmarc = dns.texts_at(&format!("_dmarc.{domain}")).await;
        let dmarc = dmarc.map_err(|reason| unavailable(&reason)).and_then(|texts| {
            let found = texts.into_iter().find(|t| is_tagged(t, "v=DMARC1"));
            found.ok_or_else(|| {
                Explanation::new(
                    format!("there is no DMARC record at _dmarc.{domain}"),
                    "add a TXT record such as \"v=DMARC1; p=none\"; with p=reject nobody can send in your name",
                )
            })
        });
        vec![
            MailCheck::advice("MX", mx),
            MailCheck::advice("SPF", spf),
            MailCheck::advice("DMARC", dmarc),
            MailCheck::advice("DKIM", self.dkim(domain, dns).await),
        ]
    }

    async fn dkim(&self, domain: &str, dns: &Dns) -> Result<String, Explanation> {
        let Some(selector) = &self.selector else {
            return Err(Explanation::new(
                "not checked: nothing in the DNS says the name of the key",
                "pass --selector with `s=` in the DKIM-Signature of a mail that your mail server sent",
            ));
        };
        let name = format!("{selector}._domainkey.{domain}");
        let texts = dns
            .texts_at(&name)
            .await
            .map_err(|reason| unavailable(&reason))?;
        let is_key = |text: &String| text.split(';').any(|tag| tag.trim().starts_with("p="));
        match texts.into_iter().find(is_key) {
            Some(key) if key.split(';').any(|tag| tag.trim() == "p=") => Err(Explanation::new(
                format!("the key at {name} is revoked"),
                "sign with another key, and publish it",
            )),
            Some(_) => Ok(format!("there is a key at {name}")),
            None => Err(Explanation::new(
                format!("there is no key at {name}"),
                "let your mail server sign mail, and publish its key there; or correct --selector",
            )),
        }
    }

    /// The mail server, up to the last step before a mail would be sent.
    async fn server(&self, email: &Email, out: &SmarthostAccount) -> Vec<MailCheck> {
        let server = format!("{}:{}", out.host, out.port());
        let (sender, mut checks) = (email.address(), Vec::new());
        let to = self.to.clone().unwrap_or_else(|| sender.clone());
        let mut connection = match SmtpConnection::open(email, out).await {
            Ok(connection) => connection,
            Err(fault) => {
                let passed = [MailStep::Connect, MailStep::Encrypt, MailStep::LogIn];
                for step in passed.into_iter().take_while(|step| *step != fault.step) {
                    if fault.step != MailStep::Files {
                        checks.extend(passed_step(step, &server, out));
                    }
                }
                checks.push(MailCheck::needed(
                    title(fault.step),
                    Err(explain(&fault, out, &server)),
                ));
                return checks;
            }
        };
        for step in [MailStep::Connect, MailStep::Encrypt, MailStep::LogIn] {
            checks.extend(passed_step(step, &server, out));
        }
        let begun = connection.begin(&sender, &to).await;
        connection.close().await;
        match begun {
            Ok(()) => checks.push(MailCheck::needed(
                title(MailStep::Sender),
                Ok(format!("{server} accepts mail from {sender} to {to}")),
            )),
            Err(fault) => {
                checks.push(MailCheck::needed(
                    title(fault.step),
                    Err(explain(&fault, out, &server)),
                ));
            }
        }
        checks
    }
}

/// The mailbox that the relay reads.
async fn mailbox(account: &ImapAccount) -> Result<String, Explanation> {
    let (host, port) = (&account.host, account.port());
    let (step, reason) = match try_mailbox(account).await {
        Ok(count) => {
            return Ok(format!(
                "{host}:{port} lets {} log in; mails in {}: {count}",
                account.user, account.folder
            ));
        }
        Err(fault) => fault,
    };
    let help = match step {
        MailboxStep::Files => {
            "write the file, and let the relay read it, or correct its name in [email.imap]"
        }
        MailboxStep::Connect => {
            "check `host` and `port` of [email.imap], and whether a firewall is in between"
        }
        MailboxStep::Encrypt => {
            "use the name in the certificate as `host` of [email.imap], set `ca_file` for an authority of your own, or try tls = \
             \"starttls\" with port 143"
        }
        MailboxStep::LogIn => {
            "check `user` and `password_file` of [email.imap]; some providers need a password for apps, and IMAP allowed in their settings"
        }
        MailboxStep::Folder => {
            "correct `folder` or `done_folder` of [email.imap], or make the folder in a mail program"
        }
    };
    Err(Explanation::new(format!("{host}:{port}: {reason}"), help))
}

/// The check of a step that went well, if there was something to check.
fn passed_step(step: MailStep, server: &str, out: &SmarthostAccount) -> Option<MailCheck> {
    let said = match (step, out.tls(), &out.user) {
        (MailStep::Connect, ..) => format!("{server} answers"),
        (MailStep::Encrypt, MailTls::None, _) => return None,
        (MailStep::Encrypt, ..) => "the certificate of the mail server is valid".to_owned(),
        (MailStep::LogIn, _, Some(user)) => format!("{server} lets {user} log in"),
        _ => return None,
    };
    Some(MailCheck::needed(title(step), Ok(said)))
}

const fn title(step: MailStep) -> &'static str {
    match step {
        MailStep::Files => "files",
        MailStep::Connect => "mail server",
        MailStep::Encrypt => "TLS",
        MailStep::LogIn => "credentials",
        MailStep::Sender | MailStep::Transfer => "sender",
        MailStep::Recipient => "recipient",
    }
}

fn explain(fault: &MailFault, out: &SmarthostAccount, server: &str) -> Explanation {
    let help = match fault.step {
        MailStep::Files => {
            "write the file, and let the relay read it, or correct its name in [email.out]"
        }
        MailStep::Connect => {
            "check `host` and `port` of [email.out], and whether a firewall is in between"
        }
        MailStep::Encrypt if out.ca_file.is_some() => {
            "check that `ca_file` of [email.out] is the authority of this certificate, and `host` the name in it"
        }
        MailStep::Encrypt => {
            "use the name in the certificate as `host` of [email.out], set `ca_file` for an authority of your own, or try tls = \
             \"tls\" with port 465"
        }
        MailStep::LogIn => {
            "check `user` and `password_file` of [email.out]; some providers need a password for apps"
        }
        MailStep::Sender | MailStep::Transfer => {
            "let this user send in the name of the relay's address, or change `mailbox` and `domain` of [email]"
        }
        MailStep::Recipient => {
            "pass an address of yours with --to; or let this user send mail to other domains"
        }
    };
    Explanation::new(format!("{server}: {fault}"), help)
}

fn unavailable(reason: &str) -> Explanation {
    Explanation::new(
        format!("it can't be looked up: {reason}"),
        "try again later, or name a server with --dns",
    )
}

fn is_tagged(text: &str, tag: &str) -> bool {
    let start = text.trim_start().get(..tag.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(tag))
}

fn sentence(fault: &Explanation) -> String {
    fault.to_string()
}

fn report(check: MailCheck) -> StartCheckReport {
    StartCheckReport {
        what: check.what,
        file: None,
        good: check.result.is_ok(),
        needed: check.is_needed,
        message: check.result.unwrap_or_else(|fault| sentence(&fault)),
    }
}
