//! One-time links to the web console, by the key in the data folder of a relay.

use super::data::DataFolder;
use crate::clock;
use crate::failure::Failure;
use crosstalk_console::ConsoleCredential;
use crosstalk_relay::server::find_or_make_link_key;

/// A link that signs in one browser, once.
pub(crate) fn sign_in_url(
    data: &DataFolder,
    url: &str,
    credential: ConsoleCredential,
) -> Result<String, Failure> {
    let key = find_or_make_link_key(data.folder()).map_err(|e| Failure::at(data.folder(), e))?;
    let mut nonce = [0; 8];
    getrandom::fill(&mut nonce)
        .map_err(|e| Failure::failed(format!("the system gives no random numbers: {e}")))?;
    let code = key.make(credential, nonce, clock::now());
    Ok(format!("{url}/sign-in?link={code}"))
}
