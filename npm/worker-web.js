// The worker of a page.
import { serve } from "./serve.js";

serve((take) => (self.onmessage = ({ data }) => take(data)), (answer) => self.postMessage(answer));
