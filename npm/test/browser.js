// Real browsers without their windows, driven over the protocols that they have built in: Chromium's
// own, and WebDriver BiDi for Firefox. Neither needs a driver or a package.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Messages over a WebSocket, each with a promise of its answer. */
class Connection {
  #waiting = new Map();
  #next = 1;

  static async open(url) {
    const connection = new Connection();
    const socket = new WebSocket(url);
    await new Promise((resolve, reject) => {
      socket.onopen = resolve;
      socket.onerror = () => reject(new Error(`${url} cannot be opened`));
    });
    connection.socket = socket;
    socket.onmessage = ({ data }) => connection.#answered(JSON.parse(data));
    return connection;
  }

  send(method, params = {}, rest = {}) {
    const id = this.#next++;
    this.socket.send(JSON.stringify({ id, method, params, ...rest }));
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject, method }));
  }

  #answered({ id, result, error, message }) {
    const { resolve, reject, method } = this.#waiting.get(id) ?? {};
    this.#waiting.delete(id);
    if (error) reject?.(new Error(`${method}: ${error.message ?? message ?? error}`));
    else resolve?.(result);
  }
}

/** Starts a browser with a profile of its own, and attaches to where it says that it listens. */
async function launch(program, flags, pattern, attach) {
  const profile = mkdtempSync(join(tmpdir(), "tapir-browser-"));
  const child = spawn(program, flags(profile), { stdio: ["ignore", "ignore", "pipe"] });
  const ended = new Promise((resolve) => child.once("exit", resolve).once("error", resolve));
  const close = async () => {
    child.kill();
    await ended;
    rmSync(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  };
  let said = "";
  const listening = new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${program} does not listen: ${said}`)), 60_000);
    child.once("error", reject).once("exit", () => reject(new Error(`${program} has ended: ${said}`)));
    child.stderr.on("data", (data) => {
      said = (said + data).slice(-10_000);
      const found = pattern.exec(said);
      if (!found) return;
      clearTimeout(timer);
      resolve(found[1]);
    });
  });
  try {
    return Object.assign(await attach(await listening), { close });
  } catch (error) {
    await close(); // or it would outlive the tests, and they it
    throw error;
  }
}

export class Chromium {
  static async open() {
    const flags = (profile) => ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
      "--remote-debugging-port=0", `--user-data-dir=${profile}`, "about:blank"];
    return launch("chromium", flags, /DevTools listening on (ws:\S+)/, (url) => new Chromium().#attach(url));
  }

  async #attach(url) {
    this.connection = await Connection.open(url);
    const { targetId } = await this.connection.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.connection.send("Target.attachToTarget", { targetId, flatten: true });
    this.session = sessionId;
    await this.send("Page.enable");
    return this;
  }

  send(method, params) {
    return this.connection.send(method, params, { sessionId: this.session });
  }

  async go(url) {
    const { errorText } = await this.send("Page.navigate", { url });
    if (errorText) throw new Error(`${url}: ${errorText}`);
    await until(`${url} is loaded`, () => this.evaluate("document.readyState === 'complete' && location.href !== 'about:blank'"));
  }

  /** What an expression, or the promise that it is, gives. */
  async evaluate(expression) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  /** The size of the window, and which colours are preferred. */
  async look({ width, height, scheme }) {
    await this.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
    await this.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
  }

  async screenshot() {
    const { data } = await this.send("Page.captureScreenshot", { format: "png" });
    return Buffer.from(data, "base64");
  }
}

export class Firefox {
  static async open() {
    const flags = (profile) => {
      writeFileSync(join(profile, "user.js"), 'user_pref("browser.shell.checkDefaultBrowser", false);\nuser_pref("datareporting.policy.dataSubmissionEnabled", false);\nuser_pref("app.update.enabled", false);\n');
      return ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0"];
    };
    return launch("firefox-esr", flags, /WebDriver BiDi listening on (ws:\S+)/, (url) => new Firefox().#attach(url));
  }

  async #attach(url) {
    this.connection = await Connection.open(`${url}/session`);
    await this.connection.send("session.new", { capabilities: {} });
    const { contexts } = await this.connection.send("browsingContext.getTree");
    this.context = contexts[0].context;
    return this;
  }

  async go(url) {
    await this.connection.send("browsingContext.navigate", { context: this.context, url, wait: "complete" });
  }

  async evaluate(expression) {
    const target = { context: this.context };
    // As JSON, for values come in a form of the protocol's own.
    const wrapped = `(async () => JSON.stringify(await (${expression})) ?? "null")()`;
    const answer = await this.connection.send("script.evaluate", { expression: wrapped, target, awaitPromise: true });
    if (answer.type === "exception") throw new Error(answer.exceptionDetails.text);
    return JSON.parse(answer.result.value);
  }
}

/** Waits until something holds. */
export async function until(what, holds) {
  const last = Date.now() + 30_000;
  for (;;) {
    if (await holds()) return;
    if (Date.now() > last) throw new Error(`it does not happen: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** The browsers that there are; the tests say which there are not. */
export const BROWSERS = { Chromium, Firefox };
