//! Where things are, by the environment of a process.

use crate::again;
use crosstalk_store::Home;

#[test]
#[ignore = "run by the other tests, in a process of its own"]
fn shown() {
    if !again::is_begun() {
        return;
    }
    let home = Home::from_env().unwrap();
    for path in [home.config(), home.keys(), home.trust()] {
        println!("<{}>", path.display());
    }
}

fn paths(variables: &[(&str, Option<&str>)]) -> Vec<String> {
    let said = again::finish(again::begin("home::shown", None, variables));
    said.split('<')
        .filter_map(|part| Some(part.split_once('>')?.0.to_owned()))
        .collect()
}

#[test]
fn one_variable_moves_everything() {
    let set = [
        ("CROSSTALK_HOME", Some("/srv/talk")),
        ("XDG_DATA_HOME", Some("/x/data")),
    ];
    let wanted = [
        "/srv/talk/config.toml",
        "/srv/talk/keys",
        "/srv/talk/trust.toml",
    ];
    assert_eq!(paths(&set), wanted);
}

#[cfg(all(unix, not(target_vendor = "apple")))]
#[test]
fn else_the_folders_of_the_platform_count() {
    let xdg = [
        ("CROSSTALK_HOME", None),
        ("XDG_CONFIG_HOME", Some("/x/config")),
        ("XDG_DATA_HOME", Some("/x/data")),
    ];
    let wanted = [
        "/x/config/crosstalk/config.toml",
        "/x/data/crosstalk/keys",
        "/x/data/crosstalk/trust.toml",
    ];
    assert_eq!(paths(&xdg), wanted);
    let plain = [
        ("CROSSTALK_HOME", Some("")),
        ("HOME", Some("/home/ann")),
        ("XDG_CONFIG_HOME", None),
        // A relative path is none, says the specification.
        ("XDG_DATA_HOME", Some("data")),
    ];
    let wanted = [
        "/home/ann/.config/crosstalk/config.toml",
        "/home/ann/.local/share/crosstalk/keys",
        "/home/ann/.local/share/crosstalk/trust.toml",
    ];
    assert_eq!(paths(&plain), wanted);
}
