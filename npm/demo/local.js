// In the place of `tapir serve`: what its page asks over the network is answered by a worker of this
// page. The page's own script is then used as it is, with these `fetch` and `WebSocket`.

const local = (() => {
  const NAME = "snips-small";

  /** What was packed into a script. */
  async function unpack(base64) {
    const packed = await (await fetch(`data:application/octet-stream;base64,${base64}`)).blob();
    const stream = packed.stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  const waiting = new Map();
  let next = 0;
  let worker;
  let failure; // why the worker answers no more

  function ask(action, given = {}) {
    if (failure) return Promise.reject(failure);
    const id = next++;
    worker.postMessage({ id, action, ...given });
    return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  }

  function failed({ message = "it cannot be started or understood" }) {
    failure = new Error(`the worker of this page has failed: ${message}`);
    for (const { reject } of waiting.values()) reject(failure);
    waiting.clear();
    worker.terminate();
    worker.onmessage = null;
  }

  /** A page that was opened from a disk may start a worker of a text, but of no file. */
  async function start() {
    const script = new Blob([TAPIR_MODULE.glue, WORKER], { type: "text/javascript" });
    worker = new Worker(URL.createObjectURL(script));
    worker.onmessage = ({ data: { id, value, error, isFatal } }) => {
      if (isFatal) return failed({ message: error });
      const { resolve, reject } = waiting.get(id);
      waiting.delete(id);
      if (error) reject(new Error(error));
      else resolve(value);
    };
    for (const kind of ["error", "messageerror"]) worker.addEventListener(kind, failed);
    const unpacked = async ([name, text]) => [name, await unpack(text)];
    const [wasm, files] = await Promise.all([unpack(TAPIR_MODULE.wasm), Promise.all(Object.entries(TAPIR_MODEL).map(unpacked))]);
    // Megabytes of text that nobody reads again.
    for (const packed of [TAPIR_MODULE, TAPIR_MODEL]) for (const name of Object.keys(packed)) delete packed[name];
    const { maxLength, ...info } = await ask("load", { wasm, files: Object.fromEntries(files) });
    return { ...info, name: NAME, default: true, max_length: maxLength };
  }

  const started = start();

  /** The answers of the server's HTTP interface. */
  async function fetchLocal(path, { body } = {}) {
    try {
      const model = await started;
      if (path === "v1/models") return Response.json({ models: [model] });
      if (path === "v1/tokenize") return Response.json({ words: await ask("words", JSON.parse(body)) });
      return Response.json({ error: `${path}: there is no such path` }, { status: 404 });
    } catch (error) {
      return Response.json({ error: error.message }, { status: 500 });
    }
  }

  /** Its WebSocket. */
  class LocalSocket {
    static OPEN = 1;
    static CLOSING = 2;
    static CLOSED = 3;

    constructor(url) {
      this.readyState = 0;
      this.stream = next++;
      const threshold = Number(new URL(url).searchParams.get("threshold"));
      this.#run(ask("open", { stream: this.stream, options: { threshold } }), () => {
        this.readyState = LocalSocket.OPEN;
        this.onopen?.();
      });
    }

    send(message) {
      this.#run(ask("answer", { stream: this.stream, message }), (data) => this.onmessage?.({ data }));
    }

    close() {
      this.readyState = LocalSocket.CLOSED;
      ask("close", { stream: this.stream }).catch(() => undefined); // with the worker the stream is gone, too
    }

    #run(promise, then) {
      promise.then(then, ({ message }) => {
        this.readyState = LocalSocket.CLOSED;
        this.onclose?.({ code: 1011, reason: message });
      });
    }
  }

  return { fetch: fetchLocal, WebSocket: LocalSocket };
})();
