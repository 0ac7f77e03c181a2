// What the native program answers, to compare with.

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const ROOT = new URL("../../", import.meta.url);

const lines = (path) => readFileSync(new URL(path, ROOT), "utf8").split("\n").filter(Boolean);

/** So many lines of a file, evenly apart. */
function some(path, count) {
  const all = lines(path);
  return Array.from({ length: count }, (_, i) => all[Math.floor((i * all.length) / count)]);
}

const requests = (count) => some("crates/tapir-models/data/snips/test/seq.in", count);
const english = (count) => some("crates/tapir-models/text/english.txt", count);

/** Real sentences for each model. */
export const SENTENCES = {
  "snips-small": [...requests(100), ...english(50)],
  pos: english(30),
  snips: requests(15),
};

/** The messages that read a sentence word by word, and the answers of `tapir stream`, with certain kernels or its best. */
export function exchanges(model, sentences, kernels) {
  const program = process.env.TAPIR_PROGRAM ?? fileURLToPath(new URL("target/debug/tapir", ROOT));
  const messages = sentences.flatMap((sentence) => [
    ...sentence.split(" ").filter(Boolean).map((push) => ({ push })),
    { finish: true },
    { reset: true },
  ]);
  const input = messages.map((message) => `${JSON.stringify(message)}\n`).join("");
  const options = { input, encoding: "utf8", maxBuffer: 1 << 28, env: { ...process.env, ...(kernels && { TAPIR_KERNELS: kernels }) } };
  const { status, stdout, stderr, error } = spawnSync(program, ["stream", "--model", model], options);
  if (error || status !== 0) throw new Error(`${program} stream: ${error?.message ?? stderr}`);
  const answers = stdout.split("\n").filter(Boolean).map((line) => JSON.parse(line));
  return messages.map((message, i) => ({ message, answer: answers[i] }));
}
