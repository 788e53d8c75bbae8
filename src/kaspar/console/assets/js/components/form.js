// Fields with their labels, hints and errors, and the form around them.
import { html, useId, useState } from "../ui.js";

function Field({ label, hint, error, id, children }) {
  return html`
    <div class="field">
      <label for=${id}>${label}</label>
      ${children}
      ${error ? html`<p class="error" id=${`${id}-note`} role="alert">${error}</p>` : hint && html`<p class="hint" id=${`${id}-note`}>${hint}</p>`}
    </div>
  `;
}

const described = (id, { hint, error }) => ({
  id,
  "aria-describedby": hint || error ? `${id}-note` : undefined,
  "aria-invalid": error ? "true" : undefined,
});

/** `onChange` gets the text. Other properties are those of an input: type, required, pattern, min ... */
export function TextField({ label, hint, error, value, onChange, ...rest }) {
  const id = useId();
  return html`
    <${Field} ...${{ label, hint, error, id }}>
      <input ...${described(id, { hint, error })} value=${value} onInput=${(event) => onChange(event.target.value)} autocomplete="off" spellcheck=${false} ...${rest} />
    <//>
  `;
}

export const NumberField = (properties) => html`<${TextField} type="number" inputmode="numeric" ...${properties} />`;

export function TextArea({ label, hint, error, value, onChange, rows = 6, ...rest }) {
  const id = useId();
  return html`
    <${Field} ...${{ label, hint, error, id }}>
      <textarea ...${described(id, { hint, error })} rows=${rows} value=${value} onInput=${(event) => onChange(event.target.value)} spellcheck=${false} ...${rest}></textarea>
    <//>
  `;
}

/** `options` are texts, or pairs of a value and a text. */
export function SelectField({ label, hint, error, value, onChange, options, ...rest }) {
  const id = useId();
  const pairs = options.map((each) => (Array.isArray(each) ? each : [each, each]));
  return html`
    <${Field} ...${{ label, hint, error, id }}>
      <select ...${described(id, { hint, error })} value=${value} onChange=${(event) => onChange(event.target.value)} ...${rest}>
        ${pairs.map(([key, text]) => html`<option key=${key} value=${key} selected=${key === value}>${text}</option>`)}
      </select>
    <//>
  `;
}

export function Checkbox({ label, value, onChange, ...rest }) {
  const id = useId();
  return html`
    <div class="checkbox">
      <input type="checkbox" id=${id} checked=${value} onChange=${(event) => onChange(event.target.checked)} ...${rest} />
      <label for=${id}>${label}</label>
    </div>
  `;
}

/** The field that / goes to. */
export function Search({ label, value, onChange }) {
  return html`
    <input class="search" type="search" data-search aria-label=${label} placeholder=${`${label}  /`} value=${value}
      onInput=${(event) => onChange(event.target.value)} autocomplete="off" spellcheck=${false} />
  `;
}

/** A form that makes one change: `onSubmit` returns a promise, whose error is shown above the buttons. */
export function ChangeForm({ action, onSubmit, onCancel, isDangerous, canSubmit = true, children }) {
  const [problem, setProblem] = useState(null);
  const [isBusy, setBusy] = useState(false);
  const submitted = async (event) => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      await onSubmit();
    } catch (failure) {
      setProblem(failure);
    } finally {
      setBusy(false);
    }
  };
  return html`
    <form class="change" onSubmit=${submitted}>
      ${children}
      ${problem && html`<p class="notice bad" role="alert">${problem.message}</p>`}
      <footer>
        ${onCancel && html`<button type="button" onClick=${onCancel}>Cancel</button>`}
        <button class=${isDangerous ? "primary danger" : "primary"} disabled=${isBusy || !canSubmit}>${isBusy ? "Working…" : action}</button>
      </footer>
    </form>
  `;
}
