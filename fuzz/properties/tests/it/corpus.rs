//! Every fuzz target over its saved corpus.

use crosstalk_fuzz_properties::TARGETS;
use std::path::Path;

#[test]
fn every_saved_input_keeps_every_property() {
    for (name, target) in TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../corpus")
            .join(name);
        let files: Vec<_> = std::fs::read_dir(&folder)
            .unwrap()
            .map(|f| f.unwrap().path())
            .collect();
        assert!(
            files.len() >= 20,
            "{} has {} files",
            folder.display(),
            files.len()
        );
        for file in files {
            println!("{name}: {}", file.display());
            target(&std::fs::read(file).unwrap());
        }
    }
}
