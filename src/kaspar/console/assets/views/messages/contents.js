// Keys, values and headers of records. They are texts of others: shown as text, with hidden characters made visible.
import { html, useState } from "../../js/ui.js";
import { bytes, number } from "../../js/format.js";
import { toast } from "../../js/components/toast.js";
import { Code, Hex, Text } from "../../js/components/values.js";

const LONG = 20_000;
const HEX_LIST = 48;

const fromHex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));

/** In a list: one line. */
export function Short({ content }) {
  if (content.kind === "null") return html`<span class="messages-null">null</span>`;
  if (content.length === 0) return html`<span class="messages-null">empty</span>`;
  if (content.kind === "hex") {
    const pairs = content.text.slice(0, HEX_LIST).match(/../g).join(" ");
    return html`<code class="messages-short">${pairs}${content.length * 2 > HEX_LIST ? " …" : ""}</code>`;
  }
  return html`<span class="messages-short"><${Text}>${content.text}<//>${content.cut ? " …" : ""}</span>`;
}

/** What it was read as: "Avro, schema 7 (orders-value v3), 1.2 kB". */
export function described(content) {
  if (content.kind === "null") return "null";
  const names = { avro: "Avro", "json-schema": "JSON Schema", protobuf: "Protobuf", json: "JSON", text: "text", integer: "integer", hex: "binary", internal: "Kafka's own" };
  const parts = [names[content.kind]];
  if (content.schema) {
    const { id, subject, version } = content.schema;
    parts.push(`schema ${id ?? ""}${subject ? ` (${subject} v${version})` : ""}`);
  }
  parts.push(bytes(content.length));
  return parts.join(", ");
}

/** In the details of a record: everything. */
export function Whole({ content, label }) {
  const [showsAll, setShowsAll] = useState(false);
  if (content.kind === "null") return html`<p class="messages-null">null</p>`;
  const isLong = content.text.length > LONG && !showsAll;
  const text = isLong ? content.text.slice(0, LONG) : content.text;
  return html`
    ${content.problem && html`<p class="notice warn">${content.problem}</p>`}
    ${content.kind === "hex" ? html`<${Hex} data=${fromHex(text)} label=${label} most=${Infinity} />` : html`<${Code} label=${label}>${text}<//>`}
    ${isLong &&
    html`<p><button type="button" class="small" onClick=${() => setShowsAll(true)}>Show all ${number(content.text.length)} characters</button></p>`}
    ${!isLong && content.cut && html`<p class="hint">Its end is not shown. Download it to see everything.</p>`}
  `;
}

/** Browsers have a clipboard for pages of this machine and by HTTPS; elsewhere an older way is left. */
async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  if (!isCopied) throw new Error("refused");
  return undefined;
}

export function CopyButton({ text, label }) {
  const copy = () =>
    copyText(text).then(
      () => toast("Copied."),
      () => toast("The browser does not allow copying.", "bad"),
    );
  return html`<button type="button" class="small" onClick=${copy}>${label}</button>`;
}
