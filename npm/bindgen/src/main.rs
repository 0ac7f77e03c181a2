//! `bindgen MODULE FOLDER web|script`: makes of a compiled module the module that JavaScript loads,
//! and the script that loads it, as an ES module or as a classic script. It is `wasm-bindgen`
//! without its command line, which takes longer to build.

use anyhow::{Context, Result, bail};
use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [module, folder, kind] = &arguments[..] else {
        bail!("expected a module, a folder, and `web` or `script`");
    };
    let mut bindgen = Bindgen::new();
    match kind.as_str() {
        "web" => bindgen.web(true)?,
        "script" => bindgen.no_modules(true)?.no_modules_global("tapirModule")?,
        other => bail!("{other}: expected `web` or `script`"),
    };
    bindgen
        .input_path(module)
        .out_name("tapir_wasm")
        .typescript(false)
        .remove_name_section(true)
        .remove_producers_section(true);
    bindgen.generate(folder).with_context(|| module.clone())
}
