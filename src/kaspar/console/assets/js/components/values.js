// Single values: statuses, names and values in pairs, texts that others have written, and bytes.
import { html } from "../ui.js";
import { number, UNKNOWN } from "../format.js";

/** A status is always a word, with a colour: good, warn, bad, or neutral. */
export const Status = ({ kind = "neutral", children }) => html`<span class=${`status ${kind}`}>${children}</span>`;

/** [["Leader", 1], ["Size", "3 MB"]]: pairs whose value is undefined are left out. */
export const KeyValue = ({ pairs }) => html`
  <dl class="pairs">
    ${pairs
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value ?? UNKNOWN}</dd></div>`)}
  </dl>
`;

/** A figure with its label: what an overview has many of. */
export const Figure = ({ label, value, kind, note, href }) => html`
  <${href ? "a" : "div"} class=${`figure ${kind ?? ""}`} href=${href}>
    <span class="label">${label}</span>
    <strong>${value}</strong>
    ${note && html`<span class="note">${note}</span>`}
  <//>
`;

// Controls and marks of direction would hide or turn around what is beside them.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;

/** Texts and hidden characters in turn, the latter by their code points. */
export function visible(text) {
  const parts = [];
  let from = 0;
  for (const found of text.matchAll(HIDDEN)) {
    if (found.index > from) parts.push(text.slice(from, found.index));
    const code = found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    parts.push(html`<span class="hidden-character" title="hidden character">U+${code}</span>`);
    from = found.index + found[0].length;
  }
  if (from < text.length) parts.push(text.slice(from));
  return parts;
}

/** A text that others have written, in one line: of its own direction, with hidden characters shown. */
export const Text = ({ children }) => html`<bdi class="text">${visible(String(children ?? ""))}</bdi>`;

/** The same in many lines, with a fixed width of characters. */
export const Code = ({ children, label }) => html`
  <pre class="code" tabindex="0" aria-label=${label}><bdi>${visible(String(children ?? ""))}</bdi></pre>
`;

const PER_LINE = 16;

/** Bytes as hex, with their offsets and what they are in ASCII. `data` is a Uint8Array. */
export function Hex({ data, label, most = 4096 }) {
  const lines = [];
  for (let at = 0; at < Math.min(data.length, most); at += PER_LINE) {
    const line = [...data.subarray(at, Math.min(at + PER_LINE, most))];
    const hex = line.map((value) => value.toString(16).padStart(2, "0")).join(" ");
    const ascii = line.map((value) => (value >= 32 && value < 127 ? String.fromCharCode(value) : ".")).join("");
    lines.push(`${at.toString(16).padStart(8, "0")}  ${hex.padEnd(PER_LINE * 3 - 1)}  ${ascii}`);
  }
  const rest = data.length - most;
  return html`
    <pre class="code" tabindex="0" aria-label=${label}>${lines.join("\n")}</pre>
    ${rest > 0 && html`<p class="hint">${number(rest)} more bytes are not shown.</p>`}
  `;
}
