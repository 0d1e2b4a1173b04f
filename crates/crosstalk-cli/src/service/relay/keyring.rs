//! Whom a relay believes: the trust file of its data folder.

use crosstalk_protocol::Trust;
use crosstalk_relay::port::Keyring;
use crosstalk_store::{TrustFile, TrustStoreError};

/// The trust file of a relay, as the relay asks for it.
#[derive(Debug)]
pub(crate) struct TrustRing {
    file: TrustFile,
}

impl TrustRing {
    pub(crate) fn new(file: TrustFile) -> Self {
        Self { file }
    }
}

impl Keyring for TrustRing {
    fn read(&self) -> Result<Trust, String> {
        self.file.read().map_err(|e| e.to_string())
    }

    fn update(&self, change: &mut dyn FnMut(&mut Trust)) -> Result<Trust, String> {
        let after = self.file.update(|trust| {
            change(trust);
            Ok::<Trust, TrustStoreError>(trust.clone())
        });
        after.map_err(|e| e.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crosstalk_store::Home;

    #[test]
    fn what_is_changed_is_there_for_others() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let ring = TrustRing::new(TrustFile::new(&home));
        assert_eq!(ring.read().unwrap(), Trust::default());
        let after = ring.update(&mut |trust| {
            trust.remove("nobody", None);
        });
        assert_eq!(after.unwrap(), TrustFile::new(&home).read().unwrap());
        std::fs::write(home.trust(), "this is not TOML").unwrap();
        assert!(ring.read().unwrap_err().contains("trust.toml"));
    }
}
