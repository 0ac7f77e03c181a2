// The worker of a page.
import { serve } from "./serve.js";

serve((take) => (self.onmessage = ({ data }) => take(data)), (answer) => self.postMessage(answer));
// Whoever asked would wait for ever.
self.addEventListener("messageerror", () => {
  throw new Error("a message to it cannot be read");
});
