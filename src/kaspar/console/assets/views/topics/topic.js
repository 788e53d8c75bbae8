// One topic: its partitions, consumers and settings, and what can be done with it.
import { html, useMemo, useState } from "../../js/ui.js";
import { change, path, useResource } from "../../js/api.js";
import { confirm } from "../../js/components/dialog.js";
import { Loaded } from "../../js/components/states.js";
import { Table } from "../../js/components/table.js";
import { Tabs } from "../../js/components/tabs.js";
import { toast } from "../../js/components/toast.js";
import { Figure, Status, Text } from "../../js/components/values.js";
import { bytes, duration, number } from "../../js/format.js";
import { Page } from "../../js/page.js";
import { link, navigate } from "../../js/router.js";
import { Configs } from "../configs.js";
import { AddPartitions, DeleteRecords } from "./changing.js";

const sum = (rows, valueOf) => {
  const values = rows.map(valueOf);
  return values.some((value) => value === null) ? null : values.reduce((whole, value) => whole + value, 0);
};

const recordsOf = (row) => (row.end_offset === null || row.start_offset === null ? null : row.end_offset - row.start_offset);

function Replicas({ row }) {
  const missing = row.replicas.filter((id) => !row.isr.includes(id));
  return html`<span class="nowrap">${row.replicas.map((id, at) => html`${at > 0 && ", "}<span class=${missing.includes(id) && "topics-missing"}>${id}${missing.includes(id) && " (out of sync)"}</span>`)}</span>`;
}

const COLUMNS = [
  { key: "partition", title: "Partition", sort: true },
  {
    key: "leader",
    title: "Leader",
    sort: true,
    render: (row) => (row.leader === null ? html`<${Status} kind="bad">none<//>` : html`${row.leader}${row.leader !== row.replicas[0] && html` <span class="hint" title="The first replica is the preferred leader">not preferred</span>`}`),
  },
  { key: "replicas", title: "Replicas", render: (row) => html`<${Replicas} row=${row} />` },
  { key: "isr", title: "In sync", value: (row) => row.isr.length - row.replicas.length, sort: true, hideOnPhone: true, render: (row) => html`<${Status} kind=${row.isr.length < row.replicas.length ? "warn" : "good"}>${row.isr.length} of ${row.replicas.length}<//>` },
  { key: "leader_epoch", title: "Epoch", align: "right", hideOnPhone: true },
  { key: "start_offset", title: "First offset", align: "right", sort: true, hideOnPhone: true, render: (row) => number(row.start_offset) },
  { key: "end_offset", title: "End offset", align: "right", sort: "descending", render: (row) => number(row.end_offset) },
  { key: "records", title: "Records", align: "right", sort: "descending", value: recordsOf, hideOnPhone: true, render: (row) => number(recordsOf(row)) },
  { key: "size", title: "Size", align: "right", sort: "descending", hideOnPhone: true, render: (row) => bytes(row.size) },
];

export default function Topic({ name }) {
  const resource = useResource(path`/api/topics/${name}`, { every: 3_000 });
  const [dialog, setDialog] = useState(null);
  const topic = resource.data;
  const may = (operation) => !topic?.operations || topic.operations.includes(operation);
  const remove = async () => {
    const question = {
      title: `Delete the topic ${name}?`,
      text: "Its records and settings are deleted from all brokers. This cannot be undone.",
      action: "Delete topic",
      isDangerous: true,
      typed: name,
    };
    if (!(await confirm(question))) return;
    try {
      await change("DELETE", path`/api/topics/${name}`);
      toast(`The topic ${name} was deleted.`);
      navigate(link("topics"));
    } catch (problem) {
      toast(problem.message, "bad");
    }
  };
  const closed = (hasChanged) => {
    setDialog(null);
    if (hasChanged) resource.reload();
  };
  const actions = topic &&
    html`
      <a class="button" href=${link("messages", name)}>Messages</a>
      <button type="button" disabled=${!may("ALTER")} onClick=${() => setDialog("partitions")}>Add partitions</button>
      <button type="button" disabled=${!may("DELETE")} onClick=${() => setDialog("records")}>Delete records</button>
      <button type="button" class="danger" disabled=${!may("DELETE")} onClick=${remove}>Delete topic</button>
    `;
  const tabs = [
    { name: "partitions", title: "Partitions", render: () => html`<${Partitions} topic=${topic} />` },
    { name: "consumers", title: "Consumers", render: () => html`<${Consumers} name=${name} />` },
    { name: "settings", title: "Settings", render: () => html`<${Configs} url=${path`/api/topics/${name}/settings`} what=${`the topic ${name}`} />` },
  ];
  return html`
    <${Page} title=${name} crumbs=${[["Topics", link("topics")]]} actions=${actions}>
      <${Loaded} resource=${resource} what="the topic">${() => html`<${Summary} topic=${topic} /><${Tabs} label=${`Topic ${name}`} tabs=${tabs} />`}<//>
      ${dialog === "partitions" && html`<${AddPartitions} name=${name} present=${topic.partitions.length} onClose=${closed} />`}
      ${dialog === "records" && html`<${DeleteRecords} topic=${topic} onClose=${closed} />`}
    <//>
  `;
}

function Summary({ topic }) {
  const { partitions } = topic;
  const behind = partitions.filter((row) => row.isr.length < row.replicas.length).length;
  const offline = partitions.filter((row) => row.leader === null).length;
  return html`
    <div class="figures">
      <${Figure} label="Partitions" value=${number(partitions.length)} note=${topic.is_internal ? "internal topic" : undefined} />
      <${Figure} label="Replication factor" value=${number(Math.max(0, ...partitions.map((row) => row.replicas.length)))} />
      <${Figure} label="In sync" value=${number(partitions.length - behind)} kind=${offline ? "bad" : behind ? "warn" : "good"} note=${offline ? `${number(offline)} without a leader` : `of ${number(partitions.length)}`} />
      <${Figure} label="Records" value=${number(sum(partitions, recordsOf))} note="offsets in its logs" />
      <${Figure} label="Size" value=${bytes(sum(partitions, (row) => row.size))} note="of the leaders' logs" />
    </div>
  `;
}

const Partitions = ({ topic }) => html`
  <${Table} label=${`Partitions of ${topic.name}`} columns=${COLUMNS} rows=${topic.partitions} rowKey=${(row) => row.partition} />
  <p class="hint topics-id">Topic id <code>${topic.topic_id}</code></p>
`;

const KINDS = { OK: "good", WARN: "warn", NOTFOUND: "neutral" };
const CONSUMER_COLUMNS = [
  { key: "group", title: "Group", sort: true, render: (row) => html`<${Text}>${row.group}<//>` },
  { key: "status", title: "Status", sort: true, render: (row) => html`<${Status} kind=${KINDS[row.status] ?? "bad"}>${row.status}<//>` },
  { key: "state", title: "State", sort: true, hideOnPhone: true },
  { key: "partitions", title: "Partitions", align: "right", sort: "descending", hideOnPhone: true },
  { key: "lag", title: "Lag, records", align: "right", sort: "descending", render: (row) => number(row.lag) },
  { key: "lag_seconds", title: "Lag, time", align: "right", sort: "descending", render: (row) => duration(row.lag_seconds === null ? null : row.lag_seconds * 1000) },
];

function Consumers({ name }) {
  const resource = useResource(path`/api/topics/${name}/groups`, { every: 5_000 });
  const rows = useMemo(() => resource.data ?? [], [resource.data]);
  return html`
    <${Loaded} resource=${resource} what="groups">
      ${() => html`<${Table} label=${`Groups that read ${name}`} columns=${CONSUMER_COLUMNS} rows=${rows} rowKey=${(row) => row.group} href=${(row) => link("groups", row.group)}
        empty="No group has committed offsets for this topic." />`}
    <//>
  `;
}
