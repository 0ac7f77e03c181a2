// Does a module label as the native program does?

import { equal, ok } from "./expect.js";

/** Compares answers of the module with those of the native program, `{message, answer}`. */
export async function likeTheProgram(model, exchanges) {
  const stream = model.stream();
  let words = 0;
  for (const { message, answer: expected } of exchanges) {
    const answer = JSON.parse(stream.answer(JSON.stringify(message)));
    const labels = ({ step, action, edits, length, committed, first, labels, spans, words }) => ({
      step, action, length, committed, first, labels, spans, words,
      edits: edits?.map(({ position, label, old }) => ({ position, label, old })),
    });
    equal(labels(answer), labels(expected), JSON.stringify(message));
    // Policy and probabilities go through f32, whose products are fused on some machines and not on
    // others; a difference of an ulp may round an activation to the next of its 32,767 steps.
    const near = (a, b, what) => ok(Math.abs((a ?? 0) - (b ?? 0)) < 5e-3, `${what}: ${a}, not ${b}`);
    near(answer.policy, expected.policy, "policy");
    answer.edits?.forEach((edit, i) => near(edit.probability, expected.edits[i].probability, "probability"));
    words += message.push ? 1 : 0;
  }
  stream.free();
  return words;
}
