// Dialogs: the browser's own, which keep the focus inside and give it back.
import { html, Shared, useEffect, useId, useRef, useState } from "../ui.js";
import { useRoute } from "../router.js";
import { useShared } from "../shared.js";

/** Open while it is rendered. `onClose` is called by Escape and by the button. */
export function Dialog({ title, onClose, children, wide }) {
  const element = useRef(null);
  const heading = useId();
  useEffect(() => {
    const dialog = element.current;
    dialog.showModal();
    return () => dialog.close();
  }, []);
  const cancelled = (event) => {
    event.preventDefault(); // whoever renders it decides
    onClose();
  };
  return html`
    <dialog ref=${element} class=${wide && "wide"} aria-labelledby=${heading} onCancel=${cancelled}>
      <header>
        <h2 id=${heading}>${title}</h2>
        <button type="button" class="icon" aria-label="Close" onClick=${onClose}>×</button>
      </header>
      ${children}
    </dialog>
  `;
}

const question = new Shared(null);

/** Asks once before a change: true if it is to be made. `typed` is a text that has to be typed first, for what cannot be
 * undone. `details` are lines that show what will change. */
export const confirm = (options) =>
  new Promise((resolve) => {
    question.set({ action: "Continue", ...options, resolve });
  });

/** A question is withdrawn when the page goes elsewhere: it belongs to the view that asked it. */
export function Questions() {
  const asked = useShared(question);
  const { path } = useRoute();
  useEffect(() => () => question.value && settle(question.value, false), [path]);
  return asked && html`<${Question} key=${asked.title} asked=${asked} />`;
}

function settle(asked, value) {
  question.set(null);
  asked.resolve(value);
}

function Question({ asked }) {
  const { title, text, details = [], action, isDangerous, typed } = asked;
  const [given, setGiven] = useState("");
  const field = useId();
  const refuse = () => settle(asked, false);
  const submitted = (event) => {
    event.preventDefault();
    if (!typed || given === typed) settle(asked, true);
  };
  return html`
    <${Dialog} title=${title} onClose=${refuse}>
      <form onSubmit=${submitted}>
        ${text && html`<p>${text}</p>`}
        ${details.length > 0 && html`<ul class="details">${details.map((line) => html`<li key=${line}><bdi>${line}</bdi></li>`)}</ul>`}
        ${typed &&
        html`
          <label class="field" for=${field}><span>Type <bdi><code>${typed}</code></bdi> to confirm</span></label>
          <input id=${field} value=${given} onInput=${(event) => setGiven(event.target.value)} autocomplete="off" spellcheck=${false} autofocus />
        `}
        <footer>
          <button type="button" onClick=${refuse}>Cancel</button>
          <button class=${isDangerous ? "primary danger" : "primary"} disabled=${typed && given !== typed}>${action}</button>
        </footer>
      </form>
    <//>
  `;
}
