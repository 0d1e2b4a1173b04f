//! Mail: `[email]` and the tables in it. Each way, out and in, is optional.

use super::Tls;
use super::check::ConfigError;
use crosstalk_email::{is_mail_domain, is_mailbox};
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// How many days an answer by mail is accepted, if nothing is configured.
const REPLY_DAYS: u32 = 30;

/// The mail of a relay.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Email {
    /// The domain of its mail address and of the Message-IDs that it writes.
    pub domain: String,
    /// The part of its mail address before the `@`.
    #[serde(default = "mailbox")]
    pub mailbox: String,
    /// Whether mail to `mailbox+anything` arrives in the mailbox, so that answers and bounces name the message that they are
    /// about.
    #[serde(default = "yes")]
    pub subaddress: bool,
    /// Days after which an answer to a mail is not accepted any more.
    #[serde(default = "reply_days")]
    pub reply_days: u32,
    /// The name that the operator's own mail server writes into Authentication-Results: its results are believed where the
    /// relay can't make its own, for mail that comes by LMTP or IMAP. That server has to remove such fields of others.
    pub trust_results: Option<String>,
    /// The mail server that sends mail.
    pub out: Option<SmarthostAccount>,
    /// Mail that another mail server hands over (LMTP).
    pub lmtp: Option<LmtpListener>,
    /// Mail that comes from everywhere (SMTP).
    pub smtp: Option<SmtpListener>,
    /// An existing mailbox that is polled.
    pub imap: Option<ImapAccount>,
}

/// How a connection to a mail server is encrypted.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum MailTls {
    /// From the beginning.
    Tls,
    /// By STARTTLS, which the server has to offer.
    Starttls,
    /// Not at all.
    None,
}

/// The account at a mail server that sends mail to everywhere.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct SmarthostAccount {
    /// The mail server.
    pub host: String,
    /// Its port.
    pub port: Option<u16>,
    /// The encryption.
    pub tls: Option<MailTls>,
    /// A file with the certificate authorities to trust instead of those of the system, PEM.
    pub ca_file: Option<PathBuf>,
    /// The user to log in as; without it, the relay does not log in.
    pub user: Option<String>,
    /// A file with the password.
    pub password_file: Option<PathBuf>,
    /// Seconds until the mail server has to have answered each command.
    #[serde(default = "mail_seconds")]
    pub timeout_seconds: u64,
}

/// Where another mail server hands mail over.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct LmtpListener {
    /// Where to listen. LMTP has no authentication.
    pub listen: LmtpAddress,
}

/// Where another mail server finds the LMTP server: an address and a port, or the path of a socket.
///
/// ```
/// use crosstalk_relay::config::{Config, LmtpAddress};
/// let text = |listen: &str| format!("[email]\ndomain = \"a.example\"\n[email.lmtp]\nlisten = \"{listen}\"");
/// let read = |listen: &str| Config::parse(&text(listen)).map(|c| c.email.unwrap().lmtp.unwrap().listen);
/// assert_eq!(read("127.0.0.1:2424").unwrap(), LmtpAddress::Network("127.0.0.1:2424".parse().unwrap()));
/// assert_eq!(read("/run/crosstalk/lmtp").unwrap(), LmtpAddress::Socket("/run/crosstalk/lmtp".into()));
/// assert!(read("localhost").is_err());
/// ```
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub enum LmtpAddress {
    /// A socket of the network.
    Network(SocketAddr),
    /// A socket in a folder: who may enter the folder may hand mail over.
    Socket(PathBuf),
}

impl TryFrom<String> for LmtpAddress {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.starts_with('/') {
            return Ok(Self::Socket(text.into()));
        }
        let address = text.parse().map(Self::Network);
        address.map_err(|_| {
            "write an address and a port, such as 127.0.0.1:2424, or the path of a socket that begins with `/`"
                .to_owned()
        })
    }
}

/// Where mail comes from everywhere.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct SmtpListener {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Certificate and key for STARTTLS.
    pub tls: Option<Tls>,
}

/// An existing mailbox.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct ImapAccount {
    /// The mail server.
    pub host: String,
    /// Its port.
    pub port: Option<u16>,
    /// The encryption.
    pub tls: Option<MailTls>,
    /// A file with the certificate authorities to trust instead of those of the system, PEM.
    pub ca_file: Option<PathBuf>,
    /// The user to log in as.
    pub user: String,
    /// A file with the password.
    pub password_file: PathBuf,
    /// The folder to read.
    #[serde(default = "inbox")]
    pub folder: String,
    /// The folder that mails are moved to when they were read; without it, they stay and are marked as read.
    pub done_folder: Option<String>,
}

impl SmarthostAccount {
    /// The encryption: what is configured, else what the port is for.
    ///
    /// ```
    /// use crosstalk_relay::config::{Config, MailTls};
    /// let text = |more: &str| format!("[email]\ndomain = \"a.example\"\n[email.out]\nhost = \"mail.a.example\"\n{more}");
    /// let out = |more: &str| Config::parse(&text(more)).unwrap().email.unwrap().out.unwrap();
    /// assert_eq!((out("").tls(), out("").port()), (MailTls::Starttls, 587));
    /// assert_eq!(out("port = 465").tls(), MailTls::Tls);
    /// assert_eq!(out("tls = \"tls\"").port(), 465);
    /// ```
    pub fn tls(&self) -> MailTls {
        let by_port = match self.port {
            Some(465) => MailTls::Tls,
            _ => MailTls::Starttls,
        };
        self.tls.unwrap_or(by_port)
    }

    /// The port: the configured one, else the usual one.
    pub fn port(&self) -> u16 {
        let usual = match self.tls() {
            MailTls::Tls => 465,
            MailTls::Starttls => 587,
            MailTls::None => 25,
        };
        self.port.unwrap_or(usual)
    }
}

impl ImapAccount {
    /// The encryption: what is configured, else what the port is for.
    pub fn tls(&self) -> MailTls {
        let by_port = match self.port {
            Some(143) => MailTls::Starttls,
            _ => MailTls::Tls,
        };
        self.tls.unwrap_or(by_port)
    }

    /// The port: the configured one, else the usual one.
    pub fn port(&self) -> u16 {
        let usual = match self.tls() {
            MailTls::Tls => 993,
            MailTls::Starttls | MailTls::None => 143,
        };
        self.port.unwrap_or(usual)
    }
}

impl Email {
    /// The mail address of the relay.
    pub fn address(&self) -> String {
        format!("{}@{}", self.mailbox, self.domain)
    }

    /// Every file that it names.
    pub(super) fn paths_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let out = self.out.iter_mut();
        let out = out.flat_map(|out| [&mut out.ca_file, &mut out.password_file]);
        let smtp = self.smtp.iter_mut().flat_map(|smtp| &mut smtp.tls);
        let smtp = smtp.flat_map(|tls| [&mut tls.certificate, &mut tls.key]);
        let imap = self.imap.iter_mut();
        let imap =
            imap.flat_map(|imap| std::iter::once(&mut imap.password_file).chain(&mut imap.ca_file));
        out.flatten().chain(smtp).chain(imap)
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if !is_mail_domain(&self.domain) {
            return Err(ConfigError::new(
                format!(
                    "`domain` of [email] is `{}`, which is no domain",
                    self.domain
                ),
                "write the part of the relay's mail address after its `@`, such as acme.example",
            ));
        }
        if !is_mailbox(&self.mailbox) {
            return Err(ConfigError::new(
                format!(
                    "`mailbox` of [email] is `{}`, which can't be written before an `@` here",
                    self.mailbox
                ),
                "write letters, digits, `-`, `_` and `.`, and no `+`",
            ));
        }
        if self.reply_days == 0 {
            return Err(ConfigError::new(
                "`reply_days = 0` of [email] would accept no answer",
                "write 1 or more, or leave it out for 30",
            ));
        }
        if let Some(out) = &self.out {
            check_host("email.out", &out.host)?;
            if out.user.is_some() != out.password_file.is_some() {
                return Err(ConfigError::new(
                    "[email.out] has only one of `user` and `password_file`",
                    "write both, or none if the mail server asks for no password",
                ));
            }
            check_password_tls("email.out", &out.host, out.tls(), out.user.is_some())?;
            if out.timeout_seconds == 0 {
                return Err(ConfigError::new(
                    "`timeout_seconds = 0` of [email.out] leaves no time for an answer",
                    "write 1 or more, or leave it out for 60",
                ));
            }
        }
        if let Some(imap) = &self.imap {
            check_host("email.imap", &imap.host)?;
            check_password_tls("email.imap", &imap.host, imap.tls(), true)?;
            let folders = std::iter::once(&imap.folder).chain(&imap.done_folder);
            for folder in folders {
                if folder.is_empty() || folder.chars().any(char::is_control) {
                    return Err(ConfigError::new(
                        format!("[email.imap] has the folder `{}`", folder.escape_debug()),
                        "write the name of a folder as your mail program shows it, such as INBOX",
                    ));
                }
            }
            if imap.done_folder.as_ref() == Some(&imap.folder) {
                return Err(ConfigError::new(
                    "`done_folder` and `folder` of [email.imap] are the same",
                    "name another folder, or leave `done_folder` out",
                ));
            }
        }
        Ok(())
    }

    /// Settings that are valid and probably a mistake, a sentence each.
    pub(super) fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        if let Some(out) = &self.out
            && out.tls() == MailTls::None
            && !is_loopback(&out.host)
        {
            doubts.push(format!(
                "[email.out] sends mail to `{}` without TLS: everybody on the way can read and change it",
                out.host
            ));
        }
        if let Some(LmtpListener {
            listen: LmtpAddress::Network(address),
        }) = &self.lmtp
            && !address.ip().is_loopback()
        {
            doubts.push(format!(
                "[email.lmtp] listens on {address}, and LMTP has no authentication: everybody who reaches it can hand mail over"
            ));
        }
        if self.out.is_some() && self.lmtp.is_none() && self.smtp.is_none() && self.imap.is_none() {
            doubts.push(
                "[email.out] sends mail, and no answer can come back: add [email.imap], [email.lmtp] or [email.smtp]"
                    .to_owned(),
            );
        }
        doubts
    }
}

/// Whether a host is this machine, so that nobody is on the way to it.
pub(crate) fn is_loopback(host: &str) -> bool {
    let ip = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || ip.is_ok_and(|ip| ip.is_loopback())
}

fn check_host(table: &str, host: &str) -> Result<(), ConfigError> {
    let is_ip = host.parse::<IpAddr>().is_ok();
    match is_ip || is_mail_domain(host) {
        true => Ok(()),
        false => Err(ConfigError::new(
            format!("`host` of [{table}] is `{host}`, which is no host"),
            "write its name, such as mail.acme.example; the port has a setting of its own",
        )),
    }
}

fn check_password_tls(
    table: &str,
    host: &str,
    tls: MailTls,
    has_password: bool,
) -> Result<(), ConfigError> {
    match tls == MailTls::None && has_password && !is_loopback(host) {
        true => Err(ConfigError::new(
            format!("[{table}] would send the password to `{host}` without TLS"),
            "write tls = \"starttls\" or \"tls\"",
        )),
        false => Ok(()),
    }
}

fn mailbox() -> String {
    "crosstalk".to_owned()
}

fn inbox() -> String {
    "INBOX".to_owned()
}

const fn yes() -> bool {
    true
}

const fn reply_days() -> u32 {
    REPLY_DAYS
}

const fn mail_seconds() -> u64 {
    60
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    const DOMAIN: &str = "[email]\ndomain = \"acme.example\"\n";

    #[test]
    fn every_way_of_mail_is_read() {
        let text = format!(
            "{DOMAIN}mailbox = \"relay\"\n[email.out]\nhost = \"127.0.0.1\"\ntls = \"none\"\n[email.lmtp]\nlisten = \
             \"127.0.0.1:2424\"\n[email.smtp]\nlisten = \"0.0.0.0:25\"\ntls = {{ certificate = \"c\", key = \"k\" }}\n\
             [email.imap]\nhost = \"imap.acme.example\"\nuser = \"relay\"\npassword_file = \"p\"\n"
        );
        let mut config = Config::parse(&text).unwrap();
        assert_eq!(config.doubts(), Vec::<String>::new());
        let paths: Vec<_> = config
            .paths_mut()
            .map(|p| p.display().to_string())
            .collect();
        assert_eq!(paths, ["c", "k", "p"]);
        let email = config.email.unwrap();
        assert_eq!(email.address(), "relay@acme.example");
        let imap = email.imap.unwrap();
        assert_eq!(
            (imap.tls(), imap.port(), imap.folder.as_str()),
            (MailTls::Tls, 993, "INBOX")
        );
    }

    #[test]
    fn wrong_settings_of_mail_are_named() {
        let out = |more: &str| format!("{DOMAIN}[email.out]\nhost = \"mail.acme.example\"\n{more}");
        let imap = |more: &str| {
            format!(
                "{DOMAIN}[email.imap]\nhost = \"mail.acme.example\"\nuser = \"u\"\npassword_file = \"p\"\n{more}"
            )
        };
        for (text, said) in [
            ("[email]\n".to_owned(), "domain"),
            ("[email]\ndomain = \"a b\"\n".to_owned(), "no domain"),
            (format!("{DOMAIN}mailbox = \"a+b\"\n"), "`a+b`"),
            (format!("{DOMAIN}reply_days = 0\n"), "reply_days"),
            (
                format!("{DOMAIN}[email.out]\nhost = \"mail.example:25\"\n"),
                "no host",
            ),
            (out("user = \"u\"\n"), "password_file"),
            (
                out("tls = \"none\"\nuser = \"u\"\npassword_file = \"p\"\n"),
                "without TLS",
            ),
            (out("timeout_seconds = 0\n"), "timeout_seconds"),
            (out("tls = \"maybe\"\n"), "maybe"),
            (imap("tls = \"none\"\n"), "without TLS"),
            (imap("folder = \"\"\n"), "folder"),
            (imap("done_folder = \"INBOX\"\n"), "the same"),
            (
                "[[route]]\nto = \"email:*\"\nby = \"email\"\n".to_owned(),
                "[email.out]",
            ),
            (
                out("[[route]]\nto = \"human://acme.example/*\"\nby = \"email\"\n"),
                "no mail address",
            ),
            (
                out(
                    "[[route]]\nto = \"ANN\"\nby = \"email\"\nmail = \"ann@acme.example, eve@x\"\n",
                ),
                "no mail address",
            ),
        ] {
            let fault = Config::parse(&text).unwrap_err().to_string();
            assert!(fault.contains(said), "{text}: {fault}");
        }
        let good = out("[[route]]\nto = \"email:*\"\nby = \"email\"\ncover = true\n");
        assert!(Config::parse(&good).is_ok());
    }

    #[test]
    fn doubtful_settings_of_mail_are_named() {
        let text = format!(
            "{DOMAIN}[email.out]\nhost = \"mail.acme.example\"\ntls = \"none\"\n[email.lmtp]\nlisten = \"0.0.0.0:24\"\n"
        );
        let doubts = Config::parse(&text).unwrap().doubts();
        assert_eq!(doubts.len(), 2, "{doubts:#?}");
        let text = format!("{DOMAIN}[email.out]\nhost = \"mail.acme.example\"\n");
        let doubts = Config::parse(&text).unwrap().doubts();
        assert!(
            doubts.len() == 1 && doubts[0].contains("no answer"),
            "{doubts:#?}"
        );
    }
}
