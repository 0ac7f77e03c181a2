// The package: the classes of the WebAssembly module, and how it and models are loaded.

import { guard } from "./guard.js";
import { candidates, first, inNode, locate, resolve, SHIPPED } from "./places.js";
import instantiate, { Model, Session, Stream } from "./wasm/tapir_wasm.js";

for (const type of [Model, Session, Stream]) guard(type);

export { Model, Session, Stream };

let started;

/** Loads the module, once. */
export function start(module) {
  started ??= load(module).catch((error) => {
    started = undefined; // the next call tries again
    throw error;
  });
  return started;
}

async function load(module = new URL("./wasm/tapir_wasm_bg.wasm", import.meta.url)) {
  // Node fetches no files.
  const isFile = inNode && module instanceof URL && module.protocol === "file:";
  await instantiate({ module_or_path: isFile ? await first([module]) : module });
}

Model.load = async function (source = SHIPPED[0], { vectors } = {}) {
  await start();
  if (typeof source !== "string" && !(source instanceof URL)) return new Model(source);
  const folder = await locate(source);
  const config = await first(candidates("config.json", folder));
  const fetched = Model.files(new TextDecoder().decode(config)).map(async (name) => {
    const isGiven = vectors !== undefined && name.endsWith(".tapirvec");
    return [name, await first(isGiven ? [await resolve(vectors)] : candidates(name, folder))];
  });
  return new Model({ "config.json": config, ...Object.fromEntries(await Promise.all(fetched)) });
};

/** Makes the change of an update to an array of labels that follows a session. */
export function apply(update, labels) {
  labels.length = Math.min(labels.length, update.length);
  for (const { position, label } of update.edits) labels[position] = label;
}
