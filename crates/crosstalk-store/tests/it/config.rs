//! The file with the settings: changed by one writer at a time, and never half.

use crate::{Place, all_names};
use crosstalk_store::{ConfigFile, ConfigFileError};

fn add(file: &ConfigFile, line: &str) -> bool {
    let added = file.update(|text| Ok::<_, ConfigFileError>(Some(format!("{text}{line}\n"))));
    added.unwrap()
}

#[test]
fn writers_lose_nothing_of_each_other() {
    let place = Place::new();
    let file = ConfigFile::new(&place.home());
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let file = &file;
            scope.spawn(move || {
                for number in 0..20 {
                    assert!(add(file, &format!("# {writer}.{number}")));
                }
            });
        }
    });
    let text = file.read().unwrap().unwrap();
    assert_eq!(text.lines().count(), 80);
    let left: Vec<String> = all_names(place.path())
        .into_iter()
        .filter(|name| name.contains("tmp"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn failed_or_empty_change_writes_nothing() {
    let place = Place::new();
    let file = ConfigFile::new(&place.home());
    let same = file.update(|text| Ok::<_, ConfigFileError>(Some(text.to_owned())));
    assert!(!same.unwrap());
    assert_eq!(file.read().unwrap(), None);
    assert!(add(&file, "a = 1"));
    let none = file.update(|_| Ok::<_, ConfigFileError>(None));
    assert!(!none.unwrap());

    #[derive(Debug)]
    enum Fault {
        Mine,
        Theirs(ConfigFileError),
    }
    impl From<ConfigFileError> for Fault {
        fn from(fault: ConfigFileError) -> Self {
            Self::Theirs(fault)
        }
    }
    let refused = file.update(|_| Err(Fault::Mine));
    assert!(matches!(refused, Err(Fault::Mine)));
    let large = file.update(|_| Ok::<_, Fault>(Some("#".repeat(1 << 21))));
    assert!(matches!(
        large,
        Err(Fault::Theirs(ConfigFileError::TooLarge { .. }))
    ));
    assert_eq!(file.read().unwrap().as_deref(), Some("a = 1\n"));
}

#[test]
#[cfg(unix)]
fn a_link_stays_a_link_and_what_others_can_change_is_refused() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let place = Place::new();
    let file = ConfigFile::new(&place.home());
    let target = place.path().join("dotfiles.toml");
    std::fs::write(&target, "a = 1\n").unwrap();
    let mode = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&target, mode).unwrap();
    };
    mode(0o644);
    symlink(&target, file.path()).unwrap();
    assert!(add(&file, "b = 2"));
    assert!(file.path().symlink_metadata().unwrap().is_symlink());
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "a = 1\nb = 2\n");
    mode(0o666);
    assert!(matches!(file.read(), Err(ConfigFileError::Exposed { .. })));
    let refused = file.update(|_| Ok::<_, ConfigFileError>(Some(String::new())));
    assert!(matches!(refused, Err(ConfigFileError::Exposed { .. })));
}
