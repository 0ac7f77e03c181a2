// The package in Node: `node node.js MODEL SENTENCES SECONDS`.

import { readFileSync } from "node:fs";

import { Model } from "../index.js";
import { wordsPerSecond } from "./words.js";

const [name, file, seconds] = process.argv.slice(2);
const model = await Model.load(name);
model.session().push("play");
console.log("first label");
const sentences = readFileSync(file, "utf8").split("\n").filter(Boolean).map((line) => line.split(" ").filter(Boolean));
console.log(JSON.stringify({ rate: wordsPerSecond(model, sentences, seconds), kernels: model.info().kernels }));
