// Resets the offsets of a group in two steps: where to, and then every move as it will be made.
import { html, useState } from "../../js/ui.js";
import { change, path } from "../../js/api.js";
import { Dialog } from "../../js/components/dialog.js";
import { ChangeForm, NumberField, SelectField, TextField } from "../../js/components/form.js";
import { Table } from "../../js/components/table.js";
import { toast } from "../../js/components/toast.js";
import { Text } from "../../js/components/values.js";
import { count, number, UNKNOWN } from "../../js/format.js";

const TARGETS = [
  ["earliest", "To the first record (earliest)"],
  ["latest", "To the end (latest)"],
  ["time", "To a time"],
  ["duration", "Back by a duration"],
  ["shift", "By a number of records"],
  ["offset", "To an offset"],
];
const UNITS = [["60000", "minutes"], ["3600000", "hours"], ["86400000", "days"]];

/** "0, 2-4" is [0, 2, 3, 4]; null if it cannot be understood. */
export function partitionsIn(text) {
  const found = new Set();
  for (const part of text.split(",").map((each) => each.trim())) {
    const match = /^(\d{1,6})(?:\s*-\s*(\d{1,6}))?$/.exec(part);
    if (!match) return null;
    const [from, to] = [Number(match[1]), Number(match[2] ?? match[1])];
    if (to < from || to - from > 10_000) return null;
    for (let partition = from; partition <= to; partition += 1) found.add(partition);
  }
  return [...found].sort((left, right) => left - right);
}

function targetOf({ kind, time, amount, unit, number: given }) {
  if (kind === "time") return { kind, value: new Date(time).getTime() };
  if (kind === "duration") return { kind, value: Math.round(Number(amount) * Number(unit)) };
  if (kind === "shift" || kind === "offset") return { kind, value: Number(given) };
  return { kind };
}

function scopesOf({ topic, partitions }) {
  if (!topic) return [];
  if (!partitions.trim()) return [{ topic }];
  const numbers = partitionsIn(partitions);
  if (numbers === null) throw new Error("Partitions must be numbers and ranges, such as 0, 2-4.");
  return [{ topic, partitions: numbers }];
}

const MOVES = [
  { key: "topic", title: "Topic", sort: true, value: (row) => row.move.topic, render: (row) => html`<${Text}>${row.move.topic}<//>` },
  { key: "partition", title: "Partition", align: "right", render: (row) => row.move.partition },
  { key: "old", title: "Committed", align: "right", render: (row) => (row.move.old === null ? UNKNOWN : number(row.move.old)) },
  { key: "new", title: "New", align: "right", render: (row) => html`<strong>${number(row.move.new)}</strong>` },
  { key: "skipped", title: "Skipped", align: "right", sort: "descending", render: (row) => number(row.skipped) },
  { key: "read_again", title: "Read again", align: "right", sort: "descending", render: (row) => number(row.read_again) },
  { key: "remark", title: "Remark", hideOnPhone: true },
];

function Choice({ group, chosen, onChange, onPreview, onClose }) {
  const set = (name) => (value) => onChange({ ...chosen, [name]: value });
  const topics = [...new Set(group.partitions.map((each) => each.topic))];
  const { kind } = chosen;
  return html`
    <${ChangeForm} action="Preview" onSubmit=${onPreview} onCancel=${onClose}>
      <${SelectField} label="Where to" value=${kind} onChange=${set("kind")} options=${TARGETS} />
      ${kind === "time" && html`<${TextField} label="Time" hint="In your time zone. The first record at or after it." type="datetime-local" step="1" required value=${chosen.time} onChange=${set("time")} />`}
      ${kind === "duration" &&
      html`<div class="columns">
        <${NumberField} label="How long" required min="0" step="any" value=${chosen.amount} onChange=${set("amount")} />
        <${SelectField} label="Unit" value=${chosen.unit} onChange=${set("unit")} options=${UNITS} />
      </div>`}
      ${kind === "shift" && html`<${NumberField} label="Records" hint="A negative number goes back." required step="1" value=${chosen.number} onChange=${set("number")} />`}
      ${kind === "offset" && html`<${NumberField} label="Offset" required min="0" step="1" value=${chosen.number} onChange=${set("number")} />`}
      <div class="columns">
        <${TextField} label="Topic" hint="Empty: all partitions with committed offsets." list="topics-of-group" value=${chosen.topic} onChange=${set("topic")} />
        ${chosen.topic && html`<${TextField} label="Partitions" hint="Empty: all. Otherwise such as 0, 2-4." value=${chosen.partitions} onChange=${set("partitions")} />`}
      </div>
      <datalist id="topics-of-group">${topics.map((topic) => html`<option key=${topic} value=${topic}></option>`)}</datalist>
    <//>
  `;
}

function Moves({ preview, onReset, onBack }) {
  const { moves, skipped, read_again: again, refusal } = preview;
  return html`
    <${ChangeForm} action=${`Reset ${count(moves.length, "partition")}`} isDangerous canSubmit=${!refusal} onSubmit=${onReset} onCancel=${onBack}>
      ${refusal && html`<p class="notice warn" role="alert">${refusal}</p>`}
      <p role="status">Up to ${count(skipped, "record")} will be skipped, and up to ${count(again, "record")} read again.</p>
      <${Table} columns=${MOVES} rows=${moves} rowKey=${(row) => `${row.move.topic}-${row.move.partition}`} label="New offsets" />
    <//>
  `;
}

export function ResetDialog({ group, onClose, onDone }) {
  const [chosen, setChosen] = useState({ kind: "earliest", time: "", amount: "1", unit: "3600000", number: "", topic: "", partitions: "" });
  const [preview, setPreview] = useState(null);
  const look = async () => {
    const body = { target: targetOf(chosen), scopes: scopesOf(chosen) };
    setPreview(await change("POST", path`/api/group-preview/${group.group_id}`, body));
  };
  const reset = async () => {
    await change("POST", path`/api/group-reset/${group.group_id}`, { moves: preview.moves.map((each) => each.move) });
    toast(`The offsets of ${group.group_id} were reset.`);
    onDone();
    onClose();
  };
  return html`
    <${Dialog} title="Reset offsets" wide onClose=${onClose}>
      ${preview === null
        ? html`<${Choice} group=${group} chosen=${chosen} onChange=${setChosen} onPreview=${look} onClose=${onClose} />`
        : html`<${Moves} preview=${preview} onReset=${reset} onBack=${() => setPreview(null)} />`}
    <//>
  `;
}
