// The worker of the demonstration, behind the script that loads the module: the model, and what
// `tapir serve` would answer.

let model;
const streams = new Map();

const actions = {
  async load({ wasm, files }) {
    await tapirModule({ module_or_path: wasm });
    model = new tapirModule.Model(files);
    return model.info();
  },
  words: ({ text }) => model.words(text),
  open: ({ stream, options }) => void streams.set(stream, model.stream(options)),
  answer: ({ stream, message }) => streams.get(stream).answer(message),
  close({ stream }) {
    streams.get(stream)?.free();
    streams.delete(stream);
  },
};

let last = Promise.resolve();
self.onmessage = ({ data: { id, action, ...given } }) => {
  last = last.then(() => actions[action](given)).then(
    (value) => self.postMessage({ id, value }),
    (error) => {
      // After a trap what was at work in the module stays so: the page ends this worker.
      const isFatal = error instanceof WebAssembly.RuntimeError;
      self.postMessage({ id, error: String(error?.message ?? error), isFatal });
    },
  );
};
