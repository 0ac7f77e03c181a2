// Words a second, as `crates/tapir/examples/throughput.rs` counts them.

/** Reads sentences word by word, each to its end, for so many seconds after a pass that warms up. */
export function wordsPerSecond(model, sentences, seconds) {
  const session = model.session();
  const pass = () => {
    let words = 0;
    for (const sentence of sentences) {
      session.reset();
      for (const word of sentence) session.push(word);
      session.finish();
      words += sentence.length;
    }
    return words;
  };
  pass();
  const since = performance.now();
  let words = 0;
  while (performance.now() - since < 1000 * seconds) words += pass();
  const rate = words / ((performance.now() - since) / 1000);
  session.free();
  return rate;
}
