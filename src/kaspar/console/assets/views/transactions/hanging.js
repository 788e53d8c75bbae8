// Transactions that hang: open on a partition, but no coordinator will end them. Found by a search of all partitions.
import { html, useState } from "../../js/ui.js";
import { useResource, withQuery } from "../../js/api.js";
import { NumberField, TextField } from "../../js/components/form.js";
import { Loaded } from "../../js/components/states.js";
import { Table } from "../../js/components/table.js";
import { Text } from "../../js/components/values.js";
import { count, number, time, UNKNOWN } from "../../js/format.js";
import { askAndChange } from "../common/changing.js";

function Found({ report, onChange }) {
  const abort = async (row) => {
    const { topic, partition, producer_id, producer_epoch, start_offset } = row;
    const question = {
      title: "Abort this hanging transaction?",
      text: "An abort marker is written to the partition. read_committed consumers then continue past it.",
      details: [`${topic}-${partition}, from offset ${start_offset}, by producer ${producer_id}`],
      typed: topic,
      action: "Abort",
      isDangerous: true,
    };
    const body = { topic, partition, producer_id, producer_epoch, start_offset };
    if (await askAndChange(question, "POST", "/api/hanging-transactions", { body, done: `The transaction on ${topic}-${partition} was aborted.` })) onChange();
  };
  const columns = [
    { key: "topic", title: "Topic", sort: true, render: (row) => html`<${Text}>${row.topic}<//>` },
    { key: "partition", title: "Partition", sort: true, align: "right" },
    { key: "start_offset", title: "From offset", align: "right", render: (row) => number(row.start_offset) },
    { key: "last_timestamp_ms", title: "Last record", sort: true, render: (row) => time(row.last_timestamp_ms) },
    { key: "producer_id", title: "Producer", align: "right", hideOnPhone: true, render: (row) => `${row.producer_id} (epoch ${row.producer_epoch})` },
    { key: "coordinator_epoch", title: "Coordinator epoch", align: "right", hideOnPhone: true, render: (row) => row.coordinator_epoch ?? UNKNOWN },
    { key: "actions", title: "Actions", align: "right", render: (row) => html`<button type="button" class="small danger" aria-label=${`Abort… on ${row.topic}-${row.partition}`} onClick=${() => abort(row)}>Abort…</button>` },
  ];
  return html`
    <p class="hint" role="status">
      ${count(report.partitions, "partition")} searched.${report.left_out > 0 && ` ${count(report.left_out, "partition")} could not be: you may not read them, or they have no leader.`}
    </p>
    <${Table} columns=${columns} rows=${report.found} rowKey=${(row) => `${row.topic}-${row.partition}-${row.producer_id}`} label="Hanging transactions" empty="No hanging transactions." />
  `;
}

export function Hanging() {
  const [topic, setTopic] = useState("");
  const [minutes, setMinutes] = useState("15");
  const [url, setUrl] = useState(null);
  const resource = useResource(url);
  const search = (event) => {
    event.preventDefault();
    const wanted = withQuery("/api/hanging-transactions", { topic, silent_ms: String(Math.round(Number(minutes) * 60_000)) });
    if (wanted === url) resource.reload();
    else setUrl(wanted);
  };
  return html`
    <p class="intro">A transaction hangs if it is open on a partition but its coordinator will never end it. read_committed consumers wait for it forever.</p>
    <form class="change panel" onSubmit=${search}>
      <div class="columns">
        <${TextField} label="Topic" hint="Empty searches all topics that you may read." value=${topic} onChange=${setTopic} />
        <${NumberField} label="Silent for (minutes)" hint="A transaction with newer records may still end by itself." min="0" step="any" required value=${minutes} onChange=${setMinutes} />
      </div>
      <footer><button class="primary" disabled=${resource.isLoading}>${resource.isLoading ? "Searching…" : "Search"}</button></footer>
    </form>
    <${Loaded} resource=${resource} what="the search">${(report) => html`<${Found} report=${report} onChange=${resource.reload} />`}<//>
  `;
}
