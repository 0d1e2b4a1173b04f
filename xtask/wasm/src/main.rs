//! `xtask-wasm LIBRARY.wasm FOLDER NAME`: writes the JavaScript module of a compiled library, `NAME.js` and `NAME_bg.wasm`.
//!
//! A program of its own, so that the other tasks don't wait for the libraries that it needs.

use std::env;
use std::error::Error;
use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [library, folder, name] = words.as_slice() else {
        return Err("usage: xtask-wasm LIBRARY.wasm FOLDER NAME".into());
    };
    let mut bindgen = Bindgen::new();
    bindgen.web(true)?.input_path(library).out_name(name);
    // The names of functions say what each crate costs; `cargo xtask js` removes them.
    bindgen.typescript(false).keep_debug(false);
    // A browser finds the WebAssembly file beside the module.
    bindgen.omit_default_module_path(false);
    bindgen.generate(folder)?;
    Ok(())
}
