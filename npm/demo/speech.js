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

    const show = (isOn) => {
      button.textContent = isOn ? "Stop" : "Listen";
      button.setAttribute("aria-pressed", String(isOn));
    };
    const hear = ({ results }) => {
      text.value = [...results].map(([best]) => best.transcript.trim()).join(" ");
      text.dispatchEvent(new InputEvent("input", { inputType: "insertFromPaste" }));
    };
    const listen = () => {
      recognition = new Recognition();
      Object.assign(recognition, { lang: "en-US", continuous: true, interimResults: true });
      recognition.onresult = hear;
      recognition.onerror = (event) => {
        error.textContent = `The browser's speech recognition says: ${event.error}`;
        error.hidden = false;
      };
      recognition.onend = () => {
        recognition = undefined;
        show(false);
        if (text.value.trim()) document.getElementById("finish").click();
      };
      document.getElementById("reset").click();
      recognition.start();
      show(true);
    };
    button.addEventListener("click", () => (recognition ? recognition.stop() : listen()));
  }
}
