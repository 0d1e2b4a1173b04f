//! The conversation with a mail client: one state machine for LMTP and SMTP, without I/O (MAI-070 to MAI-074).

use crosstalk_email::limit::MAIL_BYTES;
use crosstalk_envelope::unicode::escape;
use smtp_proto::{Error, Request};

/// The most recipients of one mail.
const MAX_RECIPIENTS: usize = 100;
/// How many commands may be wrong before the server ends the conversation.
const MAX_FAULTS: usize = 10;
/// How many commands there may be between two mails.
const MAX_COMMANDS: usize = 200;
/// The longest command, in bytes, with its line end (RFC 5321 allows 512, extensions more).
pub const MAX_COMMAND_BYTES: usize = 4096;

/// Which of the two protocols is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Another mail server hands mail over, and gets an answer for each recipient.
    Lmtp,
    /// Mail comes from everywhere.
    Smtp,
}

/// The next step after a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Say this.
    Reply(String),
    /// Say this, and read a mail.
    Data(String),
    /// Say this, and begin to encrypt.
    StartTls(String),
    /// Say this, and end.
    Close(String),
}

/// The envelope of one mail, as the client gave it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MailTransaction {
    /// The return path; empty for a report.
    pub return_path: String,
    /// The recipients that were accepted.
    pub recipients: Vec<String>,
    /// The name that the client gave itself.
    pub helo: String,
}

/// One conversation.
#[derive(Debug)]
pub struct MailSession {
    dialect: Dialect,
    /// The name of this server.
    host: String,
    /// Whether the connection can be encrypted, and is not yet.
    offers_tls: bool,
    helo: Option<String>,
    return_path: Option<String>,
    recipients: Vec<String>,
    faults: usize,
    commands: usize,
}

impl MailSession {
    /// A conversation under the name of this server.
    pub fn new(dialect: Dialect, host: &str, offers_tls: bool) -> Self {
        Self {
            dialect,
            host: host.to_owned(),
            offers_tls,
            helo: None,
            return_path: None,
            recipients: Vec::new(),
            faults: 0,
            commands: 0,
        }
    }

    /// The first line.
    pub fn greeting(&self) -> String {
        let protocol = match self.dialect {
            Dialect::Lmtp => "LMTP",
            Dialect::Smtp => "ESMTP",
        };
        line(220, &format!("{} {protocol} crosstalk", self.host))
    }

    /// Reads a command with its line end. `accepts` says whether an address is one of the gateway.
    pub fn command(&mut self, text: &[u8], accepts: impl Fn(&str) -> bool) -> Step {
        self.commands += 1;
        if self.commands > MAX_COMMANDS {
            return Step::Close(line(421, "4.7.0 too many commands without a mail"));
        }
        // A line end inside of a command would be a second command to another server.
        let Some(content) = text.strip_suffix(b"\r\n") else {
            return self.fault(500, "5.5.2 a command ends with CR LF");
        };
        if content.iter().any(|b| matches!(b, b'\r' | b'\n' | 0)) {
            return self.fault(500, "5.5.2 there is a control character in the command");
        }
        let step = match Request::parse(&mut text.iter()) {
            Ok(request) => self.request(request, accepts),
            Err(Error::UnknownCommand | Error::InvalidResponse { .. }) => {
                self.fault(500, "5.5.1 unknown command")
            }
            Err(Error::InvalidRecipientAddress | Error::InvalidSenderAddress) => {
                self.fault(501, "5.1.3 this is no mail address")
            }
            Err(_) => self.fault(501, "5.5.4 the command can't be read"),
        };
        match step {
            Step::Reply(_) if self.faults > MAX_FAULTS => {
                Step::Close(line(421, "4.7.0 too many errors"))
            }
            step => step,
        }
    }

    fn request(
        &mut self,
        request: Request<std::borrow::Cow<'_, str>>,
        accepts: impl Fn(&str) -> bool,
    ) -> Step {
        match (request, self.dialect) {
            (Request::Lhlo { host }, Dialect::Lmtp) | (Request::Ehlo { host }, Dialect::Smtp) => {
                self.hello(&host, true)
            }
            (Request::Helo { host }, Dialect::Smtp) => self.hello(&host, false),
            (Request::Mail { from }, _) => self.mail(&from.address, from.size),
            (Request::Rcpt { to }, _) => self.recipient(&to.address, accepts),
            (Request::Data, _) => self.data(),
            (Request::Rset, _) => {
                self.reset();
                Step::Reply(line(250, "2.0.0 OK"))
            }
            (Request::Noop { .. }, _) => Step::Reply(line(250, "2.0.0 OK")),
            (Request::Quit, _) => Step::Close(line(221, "2.0.0 bye")),
            (Request::StartTls, _) if self.offers_tls => {
                self.offers_tls = false;
                self.helo = None;
                self.reset();
                Step::StartTls(line(220, "2.0.0 ready to start TLS"))
            }
            (Request::Vrfy { .. }, _) => {
                Step::Reply(line(252, "2.1.5 send a mail and you will see"))
            }
            (_, Dialect::Lmtp) => self.fault(500, "5.5.1 not a command of LMTP here"),
            (_, Dialect::Smtp) => self.fault(502, "5.5.1 not a command here"),
        }
    }

    fn hello(&mut self, host: &str, is_extended: bool) -> Step {
        self.reset();
        self.helo = Some(host.to_owned());
        if !is_extended {
            return Step::Reply(line(250, &self.host));
        }
        let size = format!("SIZE {MAIL_BYTES}");
        let mut lines = vec![
            self.host.as_str(),
            "PIPELINING",
            "8BITMIME",
            "ENHANCEDSTATUSCODES",
            &size,
        ];
        if self.offers_tls {
            lines.push("STARTTLS");
        }
        let last = lines.len() - 1;
        let mark = |at: usize| if at == last { ' ' } else { '-' };
        let text = lines.iter().enumerate();
        let text = text.map(|(at, line)| format!("250{}{line}\r\n", mark(at)));
        Step::Reply(text.collect())
    }

    fn mail(&mut self, from: &str, size: usize) -> Step {
        if self.helo.is_none() {
            return self.fault(503, "5.5.1 say who you are first");
        }
        if self.return_path.is_some() {
            return self.fault(503, "5.5.1 there is a sender already");
        }
        if size > MAIL_BYTES {
            return self.fault(552, &too_large());
        }
        self.return_path = Some(from.to_owned());
        Step::Reply(line(250, "2.1.0 OK"))
    }

    fn recipient(&mut self, to: &str, accepts: impl Fn(&str) -> bool) -> Step {
        if self.return_path.is_none() {
            return self.fault(503, "5.5.1 name the sender first");
        }
        if self.recipients.len() == MAX_RECIPIENTS {
            return Step::Reply(line(452, "4.5.3 too many recipients"));
        }
        if !accepts(to) {
            // Nothing is passed on to others: this is no open relay.
            return self.fault(550, "5.1.1 this gateway has no such address");
        }
        self.recipients.push(to.to_owned());
        Step::Reply(line(250, "2.1.5 OK"))
    }

    fn data(&mut self) -> Step {
        match (self.return_path.is_some(), self.recipients.is_empty()) {
            (false, _) => self.fault(503, "5.5.1 name the sender first"),
            (true, true) => self.fault(503, "5.5.1 there is no recipient"),
            (true, false) => Step::Data(line(354, "end with a dot on a line of its own")),
        }
    }

    /// The envelope of the mail that follows. The next mail begins from the start.
    pub fn take_transaction(&mut self) -> MailTransaction {
        self.commands = 0;
        MailTransaction {
            return_path: self.return_path.take().unwrap_or_default(),
            recipients: std::mem::take(&mut self.recipients),
            helo: self.helo.clone().unwrap_or_default(),
        }
    }

    /// The answer about a mail: with LMTP once for each recipient.
    pub fn answer(&self, recipients: usize, code: u16, text: &str) -> String {
        let answer = line(code, text);
        match self.dialect {
            Dialect::Lmtp => answer.repeat(recipients),
            Dialect::Smtp => answer,
        }
    }

    fn reset(&mut self) {
        self.return_path = None;
        self.recipients.clear();
    }

    fn fault(&mut self, code: u16, text: &str) -> Step {
        self.faults += 1;
        Step::Reply(line(code, text))
    }
}

/// The answer to a mail that is too large.
pub fn too_large() -> String {
    format!(
        "5.3.4 E-TOO-LARGE: a mail has at most {MAIL_BYTES} bytes; send less text, or smaller files"
    )
}

/// The longest text of one answer, in characters: a line has 512 bytes.
const MAX_TEXT_CHARS: usize = 400;

/// One answer on one line, in ASCII whatever is in the text.
pub fn line(code: u16, text: &str) -> String {
    let text: String = escape(text)
        .chars()
        .map(|c| {
            if c.is_ascii_graphic() || c == ' ' {
                c
            } else {
                '?'
            }
        })
        .take(MAX_TEXT_CHARS)
        .collect();
    format!("{code} {text}\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(session: &mut MailSession, text: &str) -> Step {
        session.command(format!("{text}\r\n").as_bytes(), |to| {
            to.ends_with("@relay.example")
        })
    }

    fn code(step: &Step) -> &str {
        let (Step::Reply(text) | Step::Data(text) | Step::StartTls(text) | Step::Close(text)) =
            step;
        text.lines().last().unwrap().get(..3).unwrap()
    }

    #[test]
    fn mail_takes_its_steps_in_order() {
        for dialect in [Dialect::Lmtp, Dialect::Smtp] {
            let hello = match dialect {
                Dialect::Lmtp => "LHLO a.example",
                Dialect::Smtp => "EHLO a.example",
            };
            let mut session = MailSession::new(dialect, "relay.example", false);
            assert!(session.greeting().starts_with("220 relay.example "));
            for (text, expected) in [
                ("MAIL FROM:<a@b.example>", "503"),
                (hello, "250"),
                ("RCPT TO:<x@relay.example>", "503"),
                ("DATA", "503"),
                ("MAIL FROM:<>", "250"),
                ("MAIL FROM:<c@b.example>", "503"),
                ("DATA", "503"),
                ("RCPT TO:<ann@elsewhere.example>", "550"),
                ("RCPT TO:<x@relay.example>", "250"),
                (
                    "STARTTLS",
                    if dialect == Dialect::Lmtp {
                        "500"
                    } else {
                        "502"
                    },
                ),
                ("DATA", "354"),
            ] {
                assert_eq!(
                    code(&say(&mut session, text)),
                    expected,
                    "{dialect:?} {text}"
                );
            }
            let transaction = session.take_transaction();
            assert_eq!(transaction.recipients, ["x@relay.example"]);
            assert_eq!(
                (transaction.return_path.as_str(), transaction.helo.as_str()),
                ("", "a.example")
            );
            assert_eq!(code(&say(&mut session, "DATA")), "503");
        }
    }

    #[test]
    fn each_protocol_has_its_own_greeting() {
        let mut lmtp = MailSession::new(Dialect::Lmtp, "r", false);
        assert_eq!(code(&say(&mut lmtp, "EHLO a")), "500");
        let mut smtp = MailSession::new(Dialect::Smtp, "r", true);
        assert_eq!(code(&say(&mut smtp, "LHLO a")), "502");
        let Step::Reply(hello) = say(&mut smtp, "EHLO a") else {
            panic!()
        };
        assert!(hello.ends_with("250 STARTTLS\r\n"), "{hello}");
    }

    #[test]
    fn encryption_begins_the_conversation_anew() {
        let mut session = MailSession::new(Dialect::Smtp, "r", true);
        for text in [
            "EHLO a",
            "MAIL FROM:<a@b.example>",
            "RCPT TO:<x@relay.example>",
        ] {
            assert_eq!(code(&say(&mut session, text)), "250");
        }
        assert!(matches!(say(&mut session, "STARTTLS"), Step::StartTls(_)));
        assert_eq!(code(&say(&mut session, "DATA")), "503");
        assert_eq!(code(&say(&mut session, "MAIL FROM:<a@b.example>")), "503");
        assert_eq!(code(&say(&mut session, "STARTTLS")), "502");
    }

    #[test]
    fn conversation_without_a_mail_ends() {
        let mut session = MailSession::new(Dialect::Smtp, "r", false);
        let steps = (0..20).map(|_| say(&mut session, "WHAT"));
        assert!(steps.into_iter().any(|step| matches!(step, Step::Close(_))));
        let mut session = MailSession::new(Dialect::Smtp, "r", false);
        let steps = (0..300).map(|_| say(&mut session, "NOOP"));
        assert!(steps.into_iter().any(|step| matches!(step, Step::Close(_))));
    }

    #[test]
    fn commands_with_other_line_ends_are_refused() {
        for text in [
            &b"NOOP\n"[..],
            b"NOOP\rQUIT\r\n",
            b"NOOP\nQUIT\r\n",
            b"NOOP\0\r\n",
        ] {
            let mut session = MailSession::new(Dialect::Smtp, "r", false);
            assert_eq!(code(&session.command(text, |_| true)), "500", "{text:?}");
        }
    }

    #[test]
    fn size_is_checked_before_the_mail_comes() {
        let mut session = MailSession::new(Dialect::Smtp, "r", false);
        let _ = say(&mut session, "EHLO a");
        let Step::Reply(text) = say(&mut session, "MAIL FROM:<a@b.example> SIZE=99999999999")
        else {
            panic!()
        };
        assert!(text.starts_with("552 5.3.4 E-TOO-LARGE"), "{text}");
    }

    #[test]
    fn answers_are_one_line_of_ascii() {
        let text = line(550, "a\r\n250 ok é\u{202e}");
        assert_eq!(text.matches("\r\n").count(), 1);
        assert!(text.is_ascii() && text.starts_with("550 a"), "{text}");
        let session = MailSession::new(Dialect::Lmtp, "r", false);
        assert_eq!(session.answer(2, 250, "OK"), "250 OK\r\n250 OK\r\n");
    }
}
