//! The folders of the program.

use crosstalk_envelope::Explanation;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;

const VARIABLE: &str = "CROSSTALK_HOME";
const FOLDER: &str = "crosstalk";

/// The folders of one user of the program. Nothing is made before something is written there.
///
/// ```
/// use crosstalk_store::Home;
/// let home = Home::at("/srv/crosstalk");
/// assert!(home.config().ends_with("crosstalk/config.toml"));
/// assert!(home.keys().ends_with("crosstalk/keys"));
/// assert!(home.trust().ends_with("crosstalk/trust.toml"));
/// assert!(home.store().ends_with("crosstalk/crosstalk.db"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    config: PathBuf,
    data: PathBuf,
}

/// The system names no home folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.explanation())]
pub struct HomeError;

impl HomeError {
    /// Explains what happened and what to do.
    pub fn explanation(self) -> Explanation {
        Explanation::new(
            "there is no home folder for keys and trust",
            format!("set {VARIABLE} to a folder"),
        )
    }
}

impl Home {
    /// The folder of `CROSSTALK_HOME` if it is set, else the folders of the platform: `$XDG_CONFIG_HOME/crosstalk` and
    /// `$XDG_DATA_HOME/crosstalk`, `~/Library/Application Support/crosstalk` on macOS, `%APPDATA%\crosstalk` on
    /// Windows.
    pub fn from_env() -> Result<Self, HomeError> {
        Self::chosen(std::env::var_os(VARIABLE))
    }

    fn chosen(variable: Option<OsString>) -> Result<Self, HomeError> {
        if let Some(folder) = variable.filter(|folder| !folder.is_empty()) {
            // The current folder may change while the program runs; its home does not.
            let folder = std::path::absolute(folder).map_err(|_| HomeError)?;
            return Ok(Self::at(folder));
        }
        let base = etcetera::base_strategy::choose_native_strategy().map_err(|_| HomeError)?;
        let data = base.data_dir().join(FOLDER);
        // The native place of settings on macOS is for property lists, which these are not.
        let config = if cfg!(target_vendor = "apple") {
            data.clone()
        } else {
            base.config_dir().join(FOLDER)
        };
        Ok(Self { config, data })
    }

    /// One folder for everything.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        let data: PathBuf = folder.into();
        Self {
            config: data.clone(),
            data,
        }
    }

    /// The file with the settings.
    pub fn config(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// The folder with the keys.
    pub fn keys(&self) -> PathBuf {
        self.data.join("keys")
    }

    /// The file that says whom to believe.
    pub fn trust(&self) -> PathBuf {
        self.data.join("trust.toml")
    }

    /// The file with the messages.
    pub fn store(&self) -> PathBuf {
        self.data.join("crosstalk.db")
    }
}

impl AsRef<Path> for Home {
    /// The folder with the data.
    fn as_ref(&self) -> &Path {
        &self.data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_comes_first_and_an_empty_one_is_none() {
        let home = Home::chosen(Some("/srv/x".into())).unwrap();
        assert_eq!(home, Home::at(std::path::absolute("/srv/x").unwrap()));
        let relative = Home::chosen(Some("x".into())).unwrap();
        assert!(relative.keys().is_absolute());
        assert_eq!(Home::chosen(Some("".into())), Home::chosen(None));
        assert_ne!(Home::chosen(None), Ok(home));
    }
}
