// The worker of Node.
import { parentPort } from "node:worker_threads";
import { serve } from "./serve.js";

serve((take) => parentPort.on("message", take), (answer) => parentPort.postMessage(answer));
// Whoever asked would wait for ever.
parentPort.on("messageerror", (error) => {
  throw error;
});
