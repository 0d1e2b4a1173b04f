//! The authentication of the sender of a mail: SPF, DKIM and DMARC over DNS, or the results of the operator's own mail server
//! (MAI-064).

use crosstalk_email::{MailAuthentication, SenderCheck, trusted_results};
use crosstalk_relay::config::Email;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::system_conf;
use mail_auth::common::verify::VerifySignature as _;
use mail_auth::dmarc::verify::DmarcParameters;
use mail_auth::spf::verify::SpfParameters;
use mail_auth::{
    AuthenticatedMessage, DkimOutput, DkimResult, DmarcResult, MessageAuthenticator, SpfOutput,
    SpfResult,
};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// How long the checks of one mail may take.
const CHECK_SECONDS: u64 = 15;
/// How long one question to a name server may take.
const LOOK_UP_SECONDS: u64 = 4;

/// How a mail came to the gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MailPeer {
    /// The word for it: lmtp, smtp, imap.
    pub way: &'static str,
    /// The address of the sending server, if the mail came from it directly.
    pub peer: Option<IpAddr>,
    /// The name that this server gave itself.
    pub helo: String,
    /// The return path of the transaction.
    pub return_path: Option<String>,
    /// The recipients of the transaction.
    pub recipients: Vec<String>,
}

/// Checks who a mail is from.
pub struct SenderAuthenticator {
    dns: Option<MessageAuthenticator>,
}

impl SenderAuthenticator {
    /// Asks this name server, else those of the system.
    ///
    /// # Errors
    /// The configuration of the system can't be read.
    pub fn new(server: Option<SocketAddr>) -> Result<Self, String> {
        let config = match server {
            Some(address) => {
                let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
                let connections = connections.map(|mut connection| {
                    connection.port = address.port();
                    connection
                });
                let server = NameServerConfig::new(address.ip(), true, connections.to_vec());
                ResolverConfig::from_parts(None, Vec::new(), vec![server])
            }
            None => system_conf::read_system_conf()
                .map(|(config, _)| config)
                .map_err(|fault| {
                    format!("the system's resolver configuration can't be used: {fault}")
                })?,
        };
        let mut options = ResolverOpts::default();
        options.timeout = Duration::from_secs(LOOK_UP_SECONDS);
        options.attempts = 2;
        options.use_hosts_file = ResolveHosts::Never;
        let dns = MessageAuthenticator::new(config, options);
        let dns = dns.map_err(|fault| format!("no name server can be asked: {fault}"))?;
        Ok(Self { dns: Some(dns) })
    }

    /// Makes no checks of its own.
    pub const fn offline() -> Self {
        Self { dns: None }
    }

    /// The results for a mail. Where the sending server is known, the gateway makes its own; else the results of the operator's own
    /// mail server count if it is named, and DKIM alone if not.
    pub async fn check(&self, mail: &[u8], origin: &MailPeer, email: &Email) -> MailAuthentication {
        let unknown = MailAuthentication {
            spf: SenderCheck::Unknown,
            dkim: SenderCheck::Unknown,
            dmarc: SenderCheck::Unknown,
            is_aligned: false,
        };
        if origin.peer.is_none()
            && let Some(host) = &email.trust_results
            && let Some(results) = trusted_results(mail, host)
        {
            return results;
        }
        let Some(dns) = &self.dns else {
            return unknown;
        };
        let limit = Duration::from_secs(CHECK_SECONDS);
        let checked = tokio::time::timeout(limit, check(dns, mail, origin, &email.domain)).await;
        checked.unwrap_or(MailAuthentication {
            dkim: SenderCheck::TempError,
            ..unknown
        })
    }
}

async fn check(
    dns: &MessageAuthenticator,
    mail: &[u8],
    origin: &MailPeer,
    own: &str,
) -> MailAuthentication {
    let Some(message) = AuthenticatedMessage::parse(mail) else {
        return MailAuthentication {
            spf: SenderCheck::None,
            dkim: SenderCheck::None,
            dmarc: SenderCheck::PermError,
            is_aligned: false,
        };
    };
    let dkim = dns.verify_dkim(&message).await;
    let return_path = origin.return_path.as_deref().unwrap_or_default();
    let spf = match origin.peer {
        Some(ip) => {
            let parameters = match return_path {
                "" => SpfParameters::verify_ehlo(ip, &origin.helo, own),
                path => SpfParameters::verify_mail_from(ip, &origin.helo, own, path),
            };
            Some(dns.verify_spf(parameters).await)
        }
        None => None,
    };
    let none = SpfOutput::new(String::new());
    let path_domain = match return_path.rsplit_once('@') {
        Some((_, domain)) => domain,
        None => origin.helo.as_str(),
    };
    let dmarc = dns
        .verify_dmarc(DmarcParameters::new(
            &message,
            &dkim,
            path_domain,
            spf.as_ref().unwrap_or(&none),
        ))
        .await;
    let from = message
        .from()
        .rsplit_once('@')
        .map_or("", |(_, domain)| domain);
    let is_of_from = |domain: &str| !from.is_empty() && domain.eq_ignore_ascii_case(from);
    let is_dmarc_aligned =
        *dmarc.dkim_result() == DmarcResult::Pass || *dmarc.spf_result() == DmarcResult::Pass;
    // Without a policy there is no organisational domain to compare: the same domain is.
    let has_policy = dmarc.dmarc_record().is_some();
    let is_dkim_aligned = dkim.iter().any(|output| {
        let signature = output.signature();
        *output.result() == DkimResult::Pass && signature.is_some_and(|s| is_of_from(s.domain()))
    });
    let is_spf_aligned = spf
        .as_ref()
        .is_some_and(|spf| spf.result() == SpfResult::Pass)
        && is_of_from(path_domain);
    MailAuthentication {
        spf: spf
            .as_ref()
            .map_or(SenderCheck::Unknown, |spf| spf_check(spf.result())),
        dkim: dkim_check(&dkim),
        dmarc: dmarc_check(&dmarc, has_policy, spf.is_some()),
        is_aligned: is_dmarc_aligned || (!has_policy && (is_dkim_aligned || is_spf_aligned)),
    }
}

const fn spf_check(result: SpfResult) -> SenderCheck {
    match result {
        SpfResult::Pass => SenderCheck::Pass,
        SpfResult::Fail => SenderCheck::Fail,
        SpfResult::SoftFail => SenderCheck::SoftFail,
        SpfResult::Neutral => SenderCheck::Neutral,
        SpfResult::TempError => SenderCheck::TempError,
        SpfResult::PermError => SenderCheck::PermError,
        SpfResult::None => SenderCheck::None,
    }
}

/// The best of all signatures: one that can't be checked takes nothing from one that holds.
fn dkim_check(outputs: &[DkimOutput<'_>]) -> SenderCheck {
    let checks: Vec<SenderCheck> = outputs
        .iter()
        .map(|output| match output.result() {
            DkimResult::Pass => SenderCheck::Pass,
            DkimResult::Fail(_) => SenderCheck::Fail,
            DkimResult::Neutral(_) => SenderCheck::Neutral,
            DkimResult::TempError(_) => SenderCheck::TempError,
            DkimResult::PermError(_) => SenderCheck::PermError,
            DkimResult::None => SenderCheck::None,
        })
        .collect();
    let order = [
        SenderCheck::Pass,
        SenderCheck::TempError,
        SenderCheck::Fail,
        SenderCheck::Neutral,
        SenderCheck::PermError,
    ];
    let found = order.into_iter().find(|check| checks.contains(check));
    found.unwrap_or(SenderCheck::None)
}

/// Whether the domain of From vouches for the mail. Where the sending server is not known, SPF could not speak for the mail, so
/// that a missing signature denies nothing.
fn dmarc_check(output: &mail_auth::DmarcOutput, has_policy: bool, has_spf: bool) -> SenderCheck {
    let results = [output.dkim_result(), output.spf_result()];
    let is = |wanted: fn(&DmarcResult) -> bool| results.iter().any(|result| wanted(result));
    if is(|r| *r == DmarcResult::Pass) {
        return SenderCheck::Pass;
    }
    if is(|r| matches!(r, DmarcResult::TempError(_))) {
        return SenderCheck::TempError;
    }
    match (has_policy, has_spf) {
        (true, true) => SenderCheck::Fail,
        (true, false) => SenderCheck::Unknown,
        (false, _) => SenderCheck::None,
    }
}
