// Runs a test program of Rust for wasm32-wasip1: `node wasi.js PROGRAM ARGUMENTS…`. Node's WASI is
// enough for that: it is our own program, and the tests read files. With a second folder open,
// Node finds none of the files under the first.

import { readFile } from "node:fs/promises";
import { WASI } from "node:wasi";

const args = process.argv.slice(2);
const wasi = new WASI({ version: "preview1", args, env: process.env, preopens: { "/": "/" } });
const module = await WebAssembly.compile(await readFile(args[0]));
wasi.start(await WebAssembly.instantiate(module, wasi.getImportObject()));
