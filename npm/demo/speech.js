// What the browser's own speech recognition hears, where it has one: each hypothesis takes the place
// of the one before, and words that it takes back are undone.

{
  const Recognition = globalThis.SpeechRecognition ?? globalThis.webkitSpeechRecognition;
  const button = document.getElementById("listen");
  const hint = document.getElementById("listen-hint");
  const text = document.getElementById("text");
  const error = document.getElementById("error");

  if (Recognition) {
    button.hidden = hint.hidden = false;
    let recognition;
    let isHeard = false; // does the text change by what is heard?

    const listening = (now) => {
      recognition = now;
      button.textContent = now ? "Stop" : "Listen";
    };
    const complain = (what) => {
      error.textContent = `The browser's speech recognition says: ${what}`;
      error.hidden = false;
    };
    const hear = ({ results }) => {
      text.value = [...results].map(([best]) => best.transcript.trim()).join(" ");
      isHeard = true;
      text.dispatchEvent(new InputEvent("input", { inputType: "insertFromPaste" }));
      isHeard = false;
    };
    const listen = () => {
      const fresh = new Recognition();
      Object.assign(fresh, { lang: "en-US", continuous: true, interimResults: true });
      fresh.onresult = hear;
      fresh.onerror = (event) => complain(event.error);
      fresh.onend = () => {
        listening(undefined);
        if (text.value.trim()) document.getElementById("finish").click();
      };
      try {
        fresh.start();
      } catch (thrown) {
        complain(thrown.message);
        return;
      }
      document.getElementById("reset").click();
      listening(fresh);
    };
    /**
     * Stops at once. Each result has all that was heard since the start: it would overwrite what is
     * typed, bring back what was cleared, and begin anew what was finished.
     */
    const drop = () => {
      if (!recognition) return;
      recognition.onresult = recognition.onerror = recognition.onend = null;
      recognition.abort();
      listening(undefined);
    };
    button.addEventListener("click", () => (recognition ? recognition.stop() : listen()));
    document.addEventListener("click", ({ target }) => {
      if (target.closest("#finish, #reset, #play, #examples button")) drop();
    });
    text.addEventListener("input", () => {
      if (!isHeard) drop();
    });
  }
}
