// The package in real browsers.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { BROWSERS, until } from "./browser.js";
import { checks } from "./checks.js";
import { examples } from "./documents.js";
import { exchanges, SENTENCES } from "./native.js";
import { serve } from "./server.js";

// Imports nothing that the package does not: a module that cannot be loaded is an error of its own.
const PAGE = `<!doctype html><meta charset="utf-8"><title>tests</title><script type="module">
  import { Model } from "/node_modules/tapir-nlp/index.js";
  import { checks } from "/node_modules/tapir-nlp/test/checks.js";
  import { likeTheProgram } from "/node_modules/tapir-nlp/test/like.js";
  globalThis.check = async (name) => void (await checks[name]());
  globalThis.compare = async (name) =>
    likeTheProgram(await Model.load(name), await (await fetch("/exchanges.json")).json());
</script>`;

const htmlExamples = examples("html");
const pages = {
  "/": PAGE,
  "/exchanges.json": JSON.stringify(exchanges("snips-small", SENTENCES["snips-small"])),
  ...Object.fromEntries(htmlExamples.map(({ code }, i) => [`/example-${i}`, code])),
};

for (const [name, kind] of Object.entries(BROWSERS)) {
  describe(name, () => {
    let browser;
    let server;
    let missing;

    before(async () => {
      server = await serve(pages);
      try {
        browser = await kind.open();
      } catch (error) {
        // In CI it was installed, and must run.
        if (process.env.TAPIR_BROWSERS?.split(",").includes(name)) throw error;
        missing = `${name} is not here: ${error.message.slice(0, 100)}`;
        return;
      }
      await browser.go(`${server.url}/`);
      await until("the page is ready", () => browser.evaluate("typeof check === 'function'"));
    });
    after(async () => {
      server?.close();
      await browser?.close();
    });

    const check = (what, action) => test(what, async (t) => (missing ? t.skip(missing) : action(t)));

    for (const what of Object.keys(checks)) {
      check(what, () => browser.evaluate(`check(${JSON.stringify(what)})`));
    }
    check("it answers as the native program does", async (t) => {
      t.diagnostic(`${await browser.evaluate("compare('snips-small')")} words`);
    });
    htmlExamples.forEach(({ document, line, shown }, i) => {
      check(`the example at ${document}:${line} shows what it should`, async () => {
        await browser.go(`${server.url}/example-${i}`);
        const text = () => browser.evaluate("document.querySelector('pre').textContent");
        await until("it has shown something", async () => (await text()).length >= shown.length);
        assert.equal(await text(), shown);
      });
    });
  });
}
