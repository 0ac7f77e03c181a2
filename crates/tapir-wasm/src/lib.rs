#![doc = include_str!("../README.md")]

mod error;
mod input;
mod model;
mod output;
mod session;
mod stream;

use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console, js_name = error)]
    fn complain(message: &str);
}

/// A panic is an error of ours, and ends the module: it says where it was.
#[wasm_bindgen(start)]
fn start() {
    std::panic::set_hook(Box::new(|panic| complain(&format!("tapir: {panic}"))));
}
