//! A change of the file: checked before it is written, and nothing else in it is touched.

use super::{Target, Value, check, names_in, put, take};
use crate::console::{Console, YELLOW, styled};
use crate::failure::Failure;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Address, Schemes};
use crosstalk_store::{ConfigFile, Home};

/// Puts a value into the file.
pub(crate) fn set(console: &mut Console, target: &Target, value: &Value) -> Result<(), Failure> {
    let file = ConfigFile::new(&Home::from_env()?);
    file.update(|text| {
        if let (Some(name), Value::Text(address)) = (target.name(), value) {
            // A table that leads in a circle is not made.
            let mut names = names_in(text, file.path(), target.profile.as_deref())?;
            names
                .set(name, address)
                .map_err(|fault| Failure::Usage(fault.to_string()))?;
        }
        let after = put(text, target, value)?;
        check(&after, file.path())?;
        Ok::<_, Failure>(Some(after))
    })?;
    if let (Some(_), Value::Text(address)) = (target.name(), value) {
        warn_of_scheme(console, address)?;
    }
    Ok(())
}

/// A scheme that nobody knows may be a slip.
fn warn_of_scheme(console: &mut Console, address: &str) -> Result<(), Failure> {
    let scheme = Address::split(address).scheme();
    if let Some(scheme) = scheme.filter(|s| Schemes::default().find(s).is_none()) {
        let word = styled(YELLOW, "warning");
        console.talk(&format!(
            "{word}: the scheme `{}` is not in the registry (LNT-008)\n",
            escape(scheme)
        ))?;
    }
    Ok(())
}

/// Takes a value out of the file; says whether it was there.
pub(crate) fn unset(target: &Target) -> Result<bool, Failure> {
    let file = ConfigFile::new(&Home::from_env()?);
    file.update(|text| {
        let after = take(text, target)?;
        if let Some(after) = &after {
            check(after, file.path())?;
        }
        Ok::<_, Failure>(after)
    })
}
