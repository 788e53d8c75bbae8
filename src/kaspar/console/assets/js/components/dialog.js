// Dialogs: the browser's own, which keep the focus inside and give it back.
import { html, Shared, useEffect, useId, useRef, useState } from "../ui.js";
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

export function Questions() {
  const asked = useShared(question);
  return asked && html`<${Question} key=${asked.title} ...${asked} />`;
}

function Question({ title, text, details = [], action, isDangerous, typed, resolve }) {
  const [given, setGiven] = useState("");
  const field = useId();
  const answer = (value) => {
    question.set(null);
    resolve(value);
  };
  const submitted = (event) => {
    event.preventDefault();
    if (!typed || given === typed) answer(true);
  };
  return html`
    <${Dialog} title=${title} onClose=${() => answer(false)}>
      <form onSubmit=${submitted}>
        ${text && html`<p>${text}</p>`}
        ${details.length > 0 && html`<ul class="details">${details.map((line) => html`<li key=${line}><bdi>${line}</bdi></li>`)}</ul>`}
        ${typed &&
        html`
          <label class="field" for=${field}><span>Type <bdi><code>${typed}</code></bdi> to confirm</span></label>
          <input id=${field} value=${given} onInput=${(event) => setGiven(event.target.value)} autocomplete="off" spellcheck=${false} autofocus />
        `}
        <footer>
          <button type="button" onClick=${() => answer(false)}>Cancel</button>
          <button class=${isDangerous ? "primary danger" : "primary"} disabled=${typed && given !== typed}>${action}</button>
        </footer>
      </form>
    <//>
  `;
}
