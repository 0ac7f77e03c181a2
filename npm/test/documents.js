// The examples of the documents, which the tests run.

import { readFileSync } from "node:fs";

import { ROOT } from "./native.js";

const DOCUMENTS = ["docs/browser.md", "npm/README.md", "README.md"];

/** Blocks of code in a language, and what they are said to print: the block of text that follows at once. */
export function examples(language) {
  return DOCUMENTS.flatMap((document) => {
    const text = readFileSync(new URL(document, ROOT), "utf8");
    const blocks = text.matchAll(new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\`\n(?:\n\`\`\`text\n([^]*?)^\`\`\`\n)?`, "gm"));
    return [...blocks].map(({ index, 1: code, 2: shown }) => ({
      document, code, shown, line: text.slice(0, index).split("\n").length,
    }));
  });
}
