// Compiled by the tests, never run: what the types allow, and what they do not.

import { apply, Model, type Finish, type Span, type Update } from "../index.js";
import { TapirWorker, WorkerSession, WorkerStream } from "../worker.js";

export async function uses(): Promise<Span[]> {
  const model = await Model.load("snips-small");
  using session = model.session({ threshold: 0.5, undo: 64, settled: 0.95, mode: "two-pass", finalPass: false });
  const labels: string[] = [];
  const update: Update = session.push("play");
  apply(update, labels);
  apply(session.update("play some jazz"), labels);
  apply(session.update(["play", "some"] as const), labels);
  const first: number | undefined = session.stabilities()?.[0];
  // @ts-expect-error: a word is a string
  session.push(7);
  // @ts-expect-error: no such option
  model.session({ treshold: 0.5 });
  // @ts-expect-error: sessions come from models
  new (session.constructor as typeof import("../index.js").Session)();
  const end: Finish = session.finish();
  await Model.load(new URL("https://example.org/model"), { vectors: "vectors.tapirvec" });
  await Model.load({ "config.json": "{}", "model.safetensors": new Uint8Array(first ?? 0) });

  const worker = await TapirWorker.load("pos");
  const remote = await worker.session({ undo: 8 });
  const answer: Update = await remote.push("play");
  const probabilities: Float32Array = await remote.probabilities();
  // @ts-expect-error: what a worker gives is a promise
  const now: Update = remote.push("play");
  const there: boolean = remote instanceof WorkerSession || (await worker.stream()) instanceof WorkerStream;
  // @ts-expect-error: they come from a worker
  new WorkerSession();
  // @ts-expect-error: a worker is loaded
  new TapirWorker();
  await remote.free();
  worker.terminate();
  return [...end.spans, ...(await worker.tag("play")).spans.slice(answer.step + probabilities.length + now.step + Number(there))];
}
