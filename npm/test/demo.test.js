// The demonstration page as it is in the repository, opened from the disk in browsers.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";

import { BROWSERS, until } from "./browser.js";
import { exchanges, ROOT } from "./native.js";

const FOLDER = new URL("docs/demo/", ROOT);
const SENTENCE = "add step to me to the fifty clasicos playlist";

/** Types into the page as a person would, as far as its script can tell. */
const type = (text, inputType = "insertText") => `(() => {
  const box = document.getElementById("text");
  box.value = ${JSON.stringify(text)};
  box.setSelectionRange(box.value.length, box.value.length);
  box.dispatchEvent(new InputEvent("input", { inputType: ${JSON.stringify(inputType)} }));
})()`;

const LABELS = "[...document.querySelectorAll('#words .word')].map((word) => word.dataset.label)";

for (const [name, kind] of Object.entries(BROWSERS)) {
  describe(`docs/demo in ${name}`, () => {
    let browser;
    let missing;
    before(async () => {
      try {
        browser = await kind.open();
      } catch (error) {
        if (process.env.TAPIR_BROWSERS?.split(",").includes(name)) throw error;
        missing = `${name} is not here`;
      }
    });
    after(() => browser?.close());

    const screenshot = async (what) => {
      const folder = process.env.TAPIR_SCREENSHOTS;
      if (!folder || !browser.screenshot) return;
      await until("nothing moves", () => browser.evaluate("document.getAnimations().length === 0"));
      writeFileSync(`${folder}/demo-${what}.png`, await browser.screenshot());
    };

    test("it labels what is typed, word by word", async (t) => {
      if (missing) return t.skip(missing);
      await browser.look?.({ width: 1280, height: 780, scheme: "light" });
      await browser.go(new URL("index.html", FOLDER).href);
      const connection = () => browser.evaluate("document.getElementById('connection').textContent");
      await until("the model is loaded", async () => (await connection()) === "connected");
      // Asked of no other host, nor of any server.
      const asked = "performance.getEntriesByType('resource').map(({ name }) => name).filter((name) => !/^(file|data|blob):/.test(name))";
      assert.deepEqual(await browser.evaluate(asked), []);
      // Nor could it ask any.
      const violated = await browser.evaluate(`new Promise((resolve) => {
        document.addEventListener("securitypolicyviolation", ({ effectiveDirective }) => resolve(effectiveDirective), { once: true });
        fetch("http://127.0.0.1:9/").catch(() => setTimeout(resolve, 1000, "nothing"));
      })`);
      assert.equal(violated, "connect-src");

      const words = SENTENCE.split(" ");
      for (let i = 1; i <= words.length; i++) {
        await browser.evaluate(type(`${words.slice(0, i).join(" ")} `));
        await until(`${i} labels`, async () => (await browser.evaluate(LABELS)).filter(Boolean).length === i);
      }
      const answers = exchanges("snips-small", [SENTENCE]).map(({ answer }) => answer);
      const edited = answers.flatMap(({ edits }) => edits ?? []).filter(({ old }) => old).length;
      const marks = "[...document.querySelectorAll('#words .word')].reduce((sum, word) => sum + Number(word.dataset.edits), 0)";
      await browser.evaluate("document.getElementById('finish').click()");
      const expected = answers.at(-2).labels;
      await until("the labels of the native program", async () =>
        JSON.stringify(await browser.evaluate(LABELS)) === JSON.stringify(expected));
      assert.equal(await browser.evaluate(marks), edited);
      const settled = "document.querySelectorAll('#words .word.sure').length";
      await until("all is settled", async () => (await browser.evaluate(settled)) === words.length);
      await screenshot("wide-light");
      await browser.look?.({ width: 1280, height: 780, scheme: "dark" });
      await screenshot("wide-dark");
      await browser.look?.({ width: 390, height: 1400, scheme: "light" });
      await screenshot("narrow-light");
      await browser.look?.({ width: 390, height: 1400, scheme: "dark" });
      await screenshot("narrow-dark");
      assert.ok(await browser.evaluate("document.documentElement.scrollWidth <= innerWidth"));

      // Taken back, and begun anew.
      await browser.evaluate("document.getElementById('reset').click()");
      await browser.evaluate(type("play some jazz "));
      await until("three labels", async () => (await browser.evaluate(LABELS)).filter(Boolean).length === 3);
      await browser.evaluate(type("play some "));
      await until("two labels", async () => (await browser.evaluate(LABELS)).length === 2);
      assert.equal(await browser.evaluate("document.getElementById('error').hidden"), true);
      const offers = await browser.evaluate("'SpeechRecognition' in window || 'webkitSpeechRecognition' in window");
      assert.equal(await browser.evaluate("document.getElementById('listen').hidden"), !offers);
    });

    test("it takes what a recogniser hears", async (t) => {
      if (missing) return t.skip(missing);
      // A recogniser that hears what it is told to: none can hear here.
      await browser.evaluate(`(() => {
        window.SpeechRecognition = class {
          start() {
            if (window.deaf) throw new Error("there is no microphone");
            window.heard = (...texts) => this.onresult?.({ results: texts.map((transcript) => [{ transcript }]) });
          }
          stop() { this.onend(); }
          abort() { window.aborted++; }
        };
        const listen = document.getElementById("listen");
        const fresh = listen.cloneNode(true); // without the one that looked for a recogniser
        listen.replaceWith(fresh);
      })()`);
      // Not as a script of the page, which allows none but its own.
      await browser.evaluate(`(() => {${readFileSync(new URL("../demo/speech.js", import.meta.url), "utf8")}})()`);
      await browser.evaluate("document.getElementById('listen').click()");
      const click = (id) => browser.evaluate(`document.getElementById("${id}").click()`);
      const text = (id) => browser.evaluate(`document.getElementById("${id}").textContent`);
      const enter = () => browser.evaluate(`document.getElementById("text").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }))`);
      const written = () => browser.evaluate("document.getElementById('text').value");
      assert.equal(await text("listen"), "Stop");
      await browser.evaluate(`heard("play sum")`);
      await until("two labels", async () => (await browser.evaluate(LABELS)).filter(Boolean).length === 2);
      await browser.evaluate(`heard("play some jazz", " by miles davis")`);
      await until("six labels", async () => (await browser.evaluate(LABELS)).filter(Boolean).length === 6);
      await click("listen");
      await until("spans are shown", () => browser.evaluate("/miles davis/.test(document.getElementById('spans').textContent)"));

      // One that cannot start says so, leaves the text alone, and can be tried again.
      await browser.evaluate("void (window.deaf = true)");
      await click("listen");
      assert.match(await text("error"), /there is no microphone/);
      assert.equal(await text("listen"), "Listen");
      assert.equal(await written(), "play some jazz by miles davis");
      await browser.evaluate("void (window.deaf = false)");

      // What was typed is not overwritten, and what was finished not begun anew.
      await browser.evaluate("void (window.aborted = 0)");
      await click("listen");
      await browser.evaluate(`heard("play jazz")`);
      await browser.evaluate(type("play jazz loudly "));
      await browser.evaluate(`heard("play jazz by")`);
      assert.equal(await written(), "play jazz loudly ");
      assert.equal(await text("listen"), "Listen");
      for (const finish of [click.bind(null, "finish"), enter]) {
        await click("listen");
        await browser.evaluate(`heard("play some jazz")`);
        await finish();
        await browser.evaluate(`heard("play some jazz by miles")`);
        assert.equal(await written(), "play some jazz");
        assert.equal(await text("listen"), "Listen");
        await until("spans are shown", () => browser.evaluate("/jazz/.test(document.getElementById('spans').textContent)"));
      }
      assert.equal(await browser.evaluate("aborted"), 3);

      // What was cleared or is played is not overwritten by what is heard on.
      await browser.evaluate("void (window.aborted = 0)");
      for (const [id, left] of [["reset", ""], ["play", "play jazz"]]) {
        await click("listen");
        await browser.evaluate(`heard("play jazz")`);
        await click(id);
        await browser.evaluate(`heard("play jazz by miles")`);
        assert.equal(await written(), left);
        assert.equal(await text("listen"), "Listen");
      }
      assert.equal(await browser.evaluate("aborted"), 2);
    });
  });
}
