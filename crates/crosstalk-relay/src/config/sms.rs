//! Text messages: `[sms]`, the provider that sends them and calls back.

use super::check::ConfigError;
use super::email::is_loopback;
use crosstalk_email::phone_number;
use crosstalk_protocol::url::Url;
use serde::Deserialize;
use std::path::PathBuf;

/// How many days an answer by text message is accepted, if nothing is configured.
const REPLY_DAYS: u32 = 7;

/// The provider of text messages of a relay.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Sms {
    /// Where texts are posted.
    pub url: String,
    /// The number, or the name, that the texts come from.
    pub from: String,
    /// A file with the bearer token for the provider.
    pub token_file: Option<PathBuf>,
    /// A file with the secret of the provider's callbacks; without it, no answer comes in.
    pub secret_file: Option<PathBuf>,
    /// Days after which an answer to a text is not accepted any more.
    #[serde(default = "reply_days")]
    pub reply_days: u32,
    /// Whether private and loopback addresses may be reached.
    #[serde(default)]
    pub allow_private: bool,
    /// Seconds until the provider has to have answered.
    #[serde(default = "seconds")]
    pub timeout_seconds: u64,
}

impl Sms {
    /// Every file that it names.
    pub(super) fn paths_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        [&mut self.token_file, &mut self.secret_file]
            .into_iter()
            .flatten()
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let url = Url::parse(&self.url).map_err(|fault| {
            ConfigError::new(
                format!("`url` of [sms] is `{}`: {fault}", self.url),
                "write the address where your provider takes messages, such as https://sms.example/v1/messages",
            )
        })?;
        let host = url.host().to_string();
        if !url.is_https() && !is_loopback(&host) {
            return Err(ConfigError::new(
                format!("[sms] would send texts and phone numbers to `{host}` without TLS"),
                "write https://",
            ));
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == ' ';
        let has_name = (1..=11).contains(&self.from.len()) && self.from.chars().all(is_name);
        if phone_number(&self.from).is_none() && !has_name {
            return Err(ConfigError::new(
                format!(
                    "`from` of [sms] is `{}`, which is no phone number",
                    self.from
                ),
                "write it as in +4915112345678, or a name of up to 11 letters and digits",
            ));
        }
        if self.reply_days == 0 || self.timeout_seconds == 0 {
            return Err(ConfigError::new(
                "`reply_days` and `timeout_seconds` of [sms] can't be 0",
                "write 1 or more, or leave them out",
            ));
        }
        Ok(())
    }

    /// Settings that are valid and probably a mistake, a sentence each.
    pub(super) fn doubts(&self) -> Vec<String> {
        match self.secret_file {
            Some(_) => Vec::new(),
            None => vec![
                "[sms] sends text messages, and no answer can come back: add `secret_file` with the secret of the callbacks"
                    .to_owned(),
            ],
        }
    }
}

impl super::Config {
    pub(super) fn check_text_route(&self, route: &super::RouteEntry) -> Result<(), ConfigError> {
        let to = &route.to;
        if self.sms.is_none() {
            return Err(ConfigError::new(
                format!("the [[route]] to `{to}` goes by sms, and nothing says how texts are sent"),
                "add [sms] with the `url` of your provider and the number in `from`",
            ));
        }
        let leads_to_phones = ["tel:", "human://+"].iter().any(|start| {
            let given = to.get(..start.len());
            given.is_some_and(|given| given.eq_ignore_ascii_case(start))
        });
        match &route.phone {
            Some(phone) if phone_number(phone).is_none() => Err(ConfigError::new(
                format!(
                    "`phone` of the [[route]] to `{to}` is `{phone}`, which is no phone number"
                ),
                "write it as in +4915112345678",
            )),
            None if !leads_to_phones => Err(ConfigError::new(
                format!("the [[route]] to `{to}` goes by sms, and says no phone number"),
                "add `phone = \"+4915112345678\"`, or write `to = \"tel:…\"`",
            )),
            _ => Ok(()),
        }
    }
}

const fn reply_days() -> u32 {
    REPLY_DAYS
}

const fn seconds() -> u64 {
    30
}

#[cfg(test)]
mod tests {
    use super::super::Config;

    #[test]
    fn wrong_settings_of_text_messages_are_named() {
        let sms = |url: &str, from: &str, more: &str| {
            format!("[sms]\nurl = \"{url}\"\nfrom = \"{from}\"\n{more}")
        };
        let (url, from) = ("https://sms.example/messages", "+4915112345678");
        for (text, said) in [
            (sms("ftp://x", from, ""), "`url` of [sms]"),
            (sms(url, "0151 1234", "") + "x", "x"),
            (sms(url, "a name that is too long", ""), "no phone number"),
            (
                sms("http://sms.example/", from, "token_file = \"t\"\n"),
                "without TLS",
            ),
            (
                sms("http://10.0.0.1/", from, "allow_private = true\n"),
                "without TLS",
            ),
            (sms(url, from, "reply_days = 0\n"), "reply_days"),
            (
                "[[route]]\nto = \"tel:*\"\nby = \"sms\"\n".to_owned(),
                "nothing says how texts are sent",
            ),
            (
                sms(url, from, "[[route]]\nto = \"ANN\"\nby = \"sms\"\n"),
                "no phone number",
            ),
            (
                sms(
                    url,
                    from,
                    "[[route]]\nto = \"ANN\"\nby = \"sms\"\nphone = \"110\"\n",
                ),
                "`110`",
            ),
        ] {
            let fault = Config::parse(&text).unwrap_err().to_string();
            assert!(fault.contains(said), "{text}: {fault}");
        }
        for good in [
            "[[route]]\nto = \"tel:*\"\nby = \"sms\"\n",
            "[[route]]\nto = \"human://+*\"\nby = \"sms\"\n",
            "[[route]]\nto = \"ANN\"\nby = \"sms\"\nphone = \"+4915112345678\"\n",
        ] {
            let config = Config::parse(&sms(url, "Acme", good)).unwrap();
            assert!(
                config.doubts().iter().any(|d| d.contains("secret_file")),
                "{good}"
            );
        }
    }
}
