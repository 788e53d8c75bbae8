// The details of one record, and what can be done with it.
import { html } from "../../js/ui.js";
import { path, useResource, withQuery } from "../../js/api.js";
import { bytes, time } from "../../js/format.js";
import { link } from "../../js/router.js";
import { Loaded } from "../../js/components/states.js";
import { KeyValue, Status, Text } from "../../js/components/values.js";
import { CopyButton, described, Whole } from "./contents.js";

const recordPath = (topic, row) => path`/api/topics/${topic}/records/${row.partition}/${row.offset}`;

/** `formats` are {key, value}. `onReplay` and `onEdit` get the whole record. */
export function Record({ topic, row, formats, onReplay, onEdit }) {
  const resource = useResource(row.state === "damaged" ? null : withQuery(recordPath(topic, row), formats));
  if (row.state === "damaged") return html`<p class="notice bad">${row.note}</p>`;
  return html`<${Loaded} resource=${resource} what="the record">${(record) => html`<${Details} ...${{ topic, record, onReplay, onEdit }} />`}<//>`;
}

function Details({ topic, record, onReplay, onEdit }) {
  const here = new URL(link("messages", topic, { at: `offset:${record.offset}`, partitions: record.partition, order: "asc" }), location.href).href;
  const isRecord = record.state !== "marker";
  return html`
    <div class="messages-record">
      <div class="toolbar">
        <${CopyButton} label="Copy value" text=${record.value.text} />
        <${CopyButton} label="Copy link" text=${here} />
        ${record.value.kind !== "null" && html`<a class="button small" href=${`${recordPath(topic, record)}/value`} download>Download value</a>`}
        ${record.key.kind !== "null" && html`<a class="button small" href=${`${recordPath(topic, record)}/key`} download>Download key</a>`}
        ${isRecord && html`<button type="button" class="small" onClick=${() => onReplay(record)}>Replay…</button>`}
        ${isRecord && html`<button type="button" class="small" onClick=${() => onEdit(record)}>Edit and produce…</button>`}
      </div>
      ${record.dead_letter && html`<${DeadLetter} letter=${record.dead_letter} />`}
      <${KeyValue} pairs=${[
        ["Partition", record.partition],
        ["Offset", record.offset],
        ["Time", `${time(record.timestamp)} (${record.timestamp}, ${record.timestamp_type})`],
        ["Size", bytes(record.size)],
        ["Producer", record.producer_id ?? undefined],
        ["Transaction", record.state === "committed" ? undefined : html`<${State} record=${record} />`],
      ]} />
      <h2>Key <span class="hint">${described(record.key)}</span></h2>
      <${Whole} content=${record.key} label="Key" />
      <h2>Value <span class="hint">${described(record.value)}</span></h2>
      <${Whole} content=${record.value} label="Value" />
      ${record.headers.length > 0 &&
      html`
        <h2>Headers</h2>
        <dl class="pairs messages-headers">
          ${record.headers.map(({ name, value }, index) => html`<div key=${index}><dt><${Text}>${name}<//></dt><dd><${Whole} content=${value} label="Header" /></dd></div>`)}
        </dl>
      `}
    </div>
  `;
}

const DeadLetter = ({ letter }) => html`
  <div class="notice warn">
    <p><strong>Dead letter</strong> from <bdi>${letter.topic}</bdi>${letter.partition === null ? "" : `, partition ${letter.partition}`}${letter.offset === null ? "" : `, offset ${letter.offset}`}</p>
    <p><${Text}>${letter.reason}<//> ${letter.stage && html`<span class="hint">${letter.stage}</span>`}</p>
  </div>
`;

/** What became of its transaction. */
export function State({ record }) {
  if (record.state === "marker") return html`<${Status}>${record.note} marker<//>`;
  const [kind, text] = { aborted: ["bad", "aborted"], open: ["warn", "open"], damaged: ["bad", "damaged"] }[record.state] ?? [];
  return text ? html`<${Status} kind=${kind}>${text}<//>` : null;
}
