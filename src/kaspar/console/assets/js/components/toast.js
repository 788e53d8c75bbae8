// Short messages about what has happened. They are read out; those about failures stay until they are closed.
import { html, Shared, useEffect } from "../ui.js";
import { useShared } from "../shared.js";

const SHOWN_MS = 6_000;
const toasts = new Shared([]);
let last = 0;

/** `kind` is good or bad. */
export function toast(text, kind = "good") {
  last += 1;
  toasts.set([...toasts.value.slice(-3), { id: last, text, kind }]);
}

const close = (id) => toasts.set(toasts.value.filter((each) => each.id !== id));

function Toast({ id, text, kind }) {
  useEffect(() => {
    if (kind === "bad") return undefined;
    const timer = setTimeout(() => close(id), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [id]);
  return html`
    <div class=${`toast ${kind}`}>
      <p>${text}</p>
      <button type="button" class="icon" aria-label="Close message" onClick=${() => close(id)}>×</button>
    </div>
  `;
}

export function Toasts() {
  const all = useShared(toasts);
  return html`
    <div class="toasts">
      <div role="status" aria-live="polite">${all.filter((each) => each.kind !== "bad").map((each) => html`<${Toast} key=${each.id} ...${each} />`)}</div>
      <div role="alert">${all.filter((each) => each.kind === "bad").map((each) => html`<${Toast} key=${each.id} ...${each} />`)}</div>
    </div>
  `;
}
