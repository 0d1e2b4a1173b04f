//! The mail addresses of a gateway: its mailbox, alone or with a reply token behind a `+` (MAI-053).

use crate::threading::is_domain;
use crate::token::TOKEN_CHARS;

/// The longest local part of a mail address, in characters (RFC 5321).
const MAX_LOCAL_CHARS: usize = 64;

/// An address of a gateway: where a person answers, and where a mail server reports what it could not deliver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatewayAddress {
    /// The id of the message that the mail carried. It is left out if the address would become too long.
    pub message: Option<String>,
    /// The reply token.
    pub token: Option<String>,
}

impl GatewayAddress {
    /// The address of a message with its token.
    pub fn new(message: &str, token: &str) -> Self {
        Self {
            message: Some(message.to_owned()),
            token: Some(token.to_owned()),
        }
    }

    /// The address as text: `mailbox+ID.TOKEN@domain`, `mailbox+TOKEN@domain` or `mailbox@domain`, the longest one that a mail
    /// may have. It contains the id only if the id has nothing but capitals and digits: mail servers may change the case of letters.
    ///
    /// ```
    /// use crosstalk_email::GatewayAddress;
    /// let address = GatewayAddress::new("01K74V6VX0S86Z5JATM52C3M7Z", "abcdefghijklmnopqrstuvwxyz");
    /// let text = address.to_text("crosstalk", "relay.example");
    /// assert_eq!(text, "crosstalk+01K74V6VX0S86Z5JATM52C3M7Z.abcdefghijklmnopqrstuvwxyz@relay.example");
    /// assert_eq!(GatewayAddress::parse(&text.to_lowercase(), "crosstalk", "relay.example"), Some(address));
    /// assert_eq!(GatewayAddress::parse("ann@relay.example", "crosstalk", "relay.example"), None);
    /// ```
    pub fn to_text(&self, mailbox: &str, domain: &str) -> String {
        let token = self.token.as_deref();
        let id = self.message.as_deref().filter(|id| is_plain_id(id));
        let long = id.zip(token).map(|(id, token)| format!("{id}.{token}"));
        let short = token.map(str::to_owned);
        let tags = [long, short].into_iter().flatten();
        let locals = tags.map(|tag| format!("{mailbox}+{tag}"));
        let fitting = locals
            .into_iter()
            .find(|local| local.len() <= MAX_LOCAL_CHARS);
        let local = fitting.unwrap_or_else(|| mailbox.to_owned());
        format!("{local}@{domain}")
    }

    /// Reads an address of this gateway; nothing if it is another one. The case of letters does not count.
    pub fn parse(address: &str, mailbox: &str, domain: &str) -> Option<Self> {
        let (local, own) = address.trim().rsplit_once('@')?;
        if !own.eq_ignore_ascii_case(domain) {
            return None;
        }
        let (name, tag) = match local.split_once('+') {
            Some((name, tag)) => (name, Some(tag)),
            None => (local, None),
        };
        if !name.eq_ignore_ascii_case(mailbox) {
            return None;
        }
        let Some(tag) = tag else {
            return Some(Self::default());
        };
        let (id, token) = match tag.split_once('.') {
            Some((id, token)) => (Some(id.to_ascii_uppercase()), token),
            None => (None, tag),
        };
        let is_good = id.as_deref().is_none_or(is_plain_id) && is_token(token);
        is_good.then(|| Self {
            message: id,
            token: Some(token.to_ascii_lowercase()),
        })
    }
}

/// Whether a name can be the mailbox of a gateway: plain characters, and no `+` of its own.
///
/// ```
/// use crosstalk_email::is_mailbox;
/// assert!(is_mailbox("crosstalk") && is_mailbox("my.relay-1"));
/// assert!(!is_mailbox("") && !is_mailbox("a+b") && !is_mailbox("a b") && !is_mailbox("a@b") && !is_mailbox(".a"));
/// ```
pub fn is_mailbox(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
    name.len() <= MAX_LOCAL_CHARS
        && name
            .split('.')
            .all(|part| !part.is_empty() && part.bytes().all(is_plain))
}

/// Whether a text is one plain mail address, without a name or comments: nothing in it can begin another one.
///
/// ```
/// use crosstalk_email::is_mail_address;
/// assert!(is_mail_address("ann.b+c@acme.example"));
/// assert!(!is_mail_address("a@b, c@d") && !is_mail_address("<a@b>") && !is_mail_address("a b@c"));
/// ```
pub fn is_mail_address(text: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&b);
    text.rsplit_once('@').is_some_and(|(local, domain)| {
        let is_local = local.len() <= 64
            && local
                .split('.')
                .all(|part| !part.is_empty() && part.bytes().all(is_plain));
        is_local && is_mail_domain(domain)
    })
}

/// Whether a text is the domain of mail addresses.
///
/// ```
/// use crosstalk_email::is_mail_domain;
/// assert!(is_mail_domain("mail.example") && !is_mail_domain("mail.example.") && !is_mail_domain("a b"));
/// ```
pub fn is_mail_domain(domain: &str) -> bool {
    is_domain(domain)
}

fn is_plain_id(id: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit();
    !id.is_empty() && id.bytes().all(is_plain)
}

fn is_token(token: &str) -> bool {
    token.len() == TOKEN_CHARS && token.bytes().all(|b| b.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "aaaabbbbccccddddeeeeffff22";

    #[test]
    fn address_leaves_out_what_does_not_fit() {
        let text =
            |id: &str, mailbox: &str| GatewayAddress::new(id, TOKEN).to_text(mailbox, "r.example");
        assert_eq!(text("A1", "bot"), format!("bot+A1.{TOKEN}@r.example"));
        for id in ["a1", "A.1", "A+1", "Ü", "", "A@B", &"A".repeat(40)] {
            assert_eq!(text(id, "bot"), format!("bot+{TOKEN}@r.example"), "{id}");
        }
        let long = "m".repeat(60);
        assert_eq!(text("A1", &long), format!("{long}@r.example"));
        assert_eq!(GatewayAddress::default().to_text("bot", "r"), "bot@r");
    }

    #[test]
    fn other_addresses_are_not_those_of_the_gateway() {
        let parse = |text: &str| GatewayAddress::parse(text, "bot", "r.example");
        assert_eq!(parse("Bot@R.example"), Some(GatewayAddress::default()));
        for text in [
            "bot@s.example",
            "bot",
            "bots@r.example",
            "bot+@r.example",
            "bot+abc@r.example",
            &format!("bot+.{TOKEN}@r.example"),
            &format!("bot+a b.{TOKEN}@r.example"),
            &format!("bot+A.{TOKEN}.x@r.example"),
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
