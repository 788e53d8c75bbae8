// One group: its lag over time, its partitions, topics and members, and what can be done with it.
import { html, useMemo, useState } from "../../js/ui.js";
import { path, useResource, withQuery } from "../../js/api.js";
import { Chart } from "../../js/components/chart.js";
import { Loaded } from "../../js/components/states.js";
import { Table } from "../../js/components/table.js";
import { Tabs } from "../../js/components/tabs.js";
import { Figure, KeyValue, Text } from "../../js/components/values.js";
import { count, duration, number, UNKNOWN } from "../../js/format.js";
import { useLive } from "../../js/live.js";
import { Page } from "../../js/page.js";
import { link, navigate } from "../../js/router.js";
import { askAndChange } from "../common/changing.js";
import { ResetDialog } from "./reset.js";
import { kindOf, LagStatus, meaningOf } from "./status.js";

const EVERY_MS = 5_000;
const seconds = (value) => (value === null || value === undefined ? UNKNOWN : duration(value * 1000));
const topicLink = (topic) => html`<a href=${link("topics", topic)}><${Text}>${topic}<//></a>`;

/** The committed offset is that of the next record to read: it leads there. */
function nextRecord({ topic, partition, committed_offset: offset }) {
  if (offset === null) return UNKNOWN;
  const address = link("messages", topic, { partitions: partition, at: `offset:${offset}`, order: "asc" });
  return html`<a href=${address} title="Show the records from here">${number(offset)}</a>`;
}

const PARTITIONS = [
  { key: "topic", title: "Topic", sort: true, render: (row) => topicLink(row.topic) },
  { key: "partition", title: "Partition", sort: true, align: "right" },
  { key: "status", title: "Status", sort: true, render: (row) => html`<${LagStatus} status=${row.status} />` },
  { key: "lag", title: "Lag", sort: "descending", align: "right", render: (row) => number(row.lag) },
  { key: "lag_seconds", title: "Behind", sort: "descending", align: "right", render: (row) => seconds(row.lag_seconds) },
  { key: "committed_offset", title: "Committed", align: "right", render: (row) => nextRecord(row) },
  { key: "end_offset", title: "End", align: "right", hideOnPhone: true, render: (row) => number(row.end_offset) },
  { key: "stable_offset", title: "Last stable", align: "right", hideOnPhone: true, render: (row) => number(row.stable_offset) },
  { key: "owner", title: "Read by", sort: true, hideOnPhone: true, render: (row) => (row.owner === null ? UNKNOWN : html`<${Text}>${row.owner}<//>`) },
];

function LagCharts({ live }) {
  const points = live?.value?.points;
  const lag = useMemo(() => [{ label: "Lag", points: (points ?? []).map((each) => [each.at_ms, each.lag]) }], [points]);
  const behind = useMemo(
    () => [{ label: "Behind", points: (points ?? []).filter((each) => each.lag_seconds !== null).map((each) => [each.at_ms, each.lag_seconds]) }],
    [points],
  );
  const empty = "No data yet. The monitor reads the lag every few seconds.";
  return html`
    <div class="charts">
      <${Chart} title="Lag in records" series=${lag} empty=${empty} />
      <${Chart} title="Behind" series=${behind} unit="s" empty=${empty} />
    </div>
  `;
}

function Partitions({ group }) {
  return html`<${Table} columns=${PARTITIONS} rows=${group.partitions} rowKey=${(row) => `${row.topic}-${row.partition}`} label="Partitions"
    initialSort=${{ key: "topic", descending: false }} empty="No committed offsets and no assigned partitions." />`;
}

function Topics({ group, onChange }) {
  const topics = new Map();
  for (const each of group.partitions) {
    const row = topics.get(each.topic) ?? { topic: each.topic, partitions: 0, committed: 0, lag: 0 };
    row.partitions += 1;
    row.committed += each.committed_offset === null ? 0 : 1;
    row.lag += each.lag ?? 0;
    topics.set(each.topic, row);
  }
  const remove = async ({ topic, committed }) => {
    const question = {
      title: `Delete the offsets of ${topic}?`,
      text: `The committed offsets of ${count(committed, "partition")} are deleted. Its consumers then start at auto.offset.reset.`,
      typed: topic,
      action: "Delete offsets",
      isDangerous: true,
    };
    const url = withQuery(path`/api/group-offsets/${group.group_id}`, { topic });
    if (await askAndChange(question, "DELETE", url, { done: `The offsets of ${topic} were deleted.` })) onChange();
  };
  const columns = [
    { key: "topic", title: "Topic", sort: true, render: (row) => topicLink(row.topic) },
    { key: "partitions", title: "Partitions", sort: "descending", align: "right", render: (row) => number(row.partitions) },
    { key: "lag", title: "Lag", sort: "descending", align: "right", render: (row) => number(row.lag) },
    { key: "actions", title: "Actions", align: "right", render: (row) => row.committed > 0 && html`<button type="button" class="small danger" aria-label=${`Delete offsets… of ${row.topic}`} onClick=${() => remove(row)}>Delete offsets…</button>` },
  ];
  return html`<${Table} columns=${columns} rows=${[...topics.values()]} rowKey=${(row) => row.topic} label="Topics" empty="No topics." />`;
}

const assigned = (assignment) =>
  Object.entries(assignment).map(([topic, partitions]) => html`<div key=${topic}><${Text}>${topic}<//>: ${partitions.join(", ")}</div>`);

function Members({ group, onChange }) {
  const remove = async (member) => {
    const question = {
      title: `Remove the member ${member.client_id}?`,
      text: "Its partitions are assigned to the other members. A member that is still running rejoins.",
      details: [member.member_id],
      action: "Remove member",
      isDangerous: true,
    };
    const url = withQuery(path`/api/group-members/${group.group_id}`, { member: member.member_id });
    if (await askAndChange(question, "DELETE", url, { done: `${member.client_id} was removed.` })) onChange();
  };
  const columns = [
    { key: "client_id", title: "Client id", sort: true, render: (row) => html`<${Text}>${row.client_id}<//>` },
    { key: "host", title: "Host", sort: true },
    { key: "member_id", title: "Member id", hideOnPhone: true, render: (row) => html`<${Text}>${row.group_instance_id ?? row.member_id}<//>` },
    { key: "assignment", title: "Partitions", render: (row) => (Object.keys(row.assignment).length ? assigned(row.assignment) : UNKNOWN) },
    { key: "actions", title: "Actions", align: "right", render: (row) => html`<button type="button" class="small danger" aria-label=${`Remove… ${row.client_id}`} onClick=${() => remove(row)}>Remove…</button>` },
  ];
  return html`<${Table} columns=${columns} rows=${group.members} rowKey=${(row) => row.member_id} label="Members" empty="No members." />`;
}

export function GroupView({ name }) {
  const resource = useResource(path`/api/groups/${name}`, { every: EVERY_MS });
  const live = useLive(`group:${name}`);
  const [isResetting, setResetting] = useState(false);
  const group = resource.data;
  const remove = async () => {
    const question = { title: `Delete the group ${name}?`, text: "Its committed offsets are deleted with it.", typed: name, action: "Delete group", isDangerous: true };
    if (await askAndChange(question, "DELETE", path`/api/groups/${name}`, { done: `The group ${name} was deleted.` })) navigate("#/groups");
  };
  const actions = group && html`
    <button type="button" onClick=${() => setResetting(true)}>Reset offsets…</button>
    <button type="button" class="danger" onClick=${remove}>Delete group…</button>
  `;
  return html`
    <${Page} title=${name} crumbs=${[["Groups", "#/groups"]]} actions=${actions}>
      <${Loaded} resource=${resource} what="the group">
        ${(data) => html`
          ${data.remark && html`<p class="notice">${data.remark}</p>`}
          <div class="figures">
            <${Figure} label="Lag status" value=${data.status ?? "unknown"} kind=${kindOf(data.status)} note=${meaningOf(data.status)} />
            <${Figure} label="State" value=${data.state} note=${data.type} />
            <${Figure} label="Members" value=${number(data.members.length)} />
            <${Figure} label="Lag" value=${number(data.total_lag)} note="records" />
            <${Figure} label="Behind" value=${seconds(data.max_lag_seconds)} />
          </div>
          <${LagCharts} live=${live} />
          <div class="spaced">
            <${Tabs} label="Parts of the group" tabs=${[
              { name: "partitions", title: `Partitions (${number(data.partitions.length)})`, render: () => html`<${Partitions} group=${data} />` },
              { name: "topics", title: "Topics", render: () => html`<${Topics} group=${data} onChange=${resource.reload} />` },
              { name: "members", title: `Members (${number(data.members.length)})`, render: () => html`<${Members} group=${data} onChange=${resource.reload} />` },
              { name: "details", title: "Details", render: () => html`<${Details} group=${data} />` },
            ]} />
          </div>
        `}
      <//>
      ${isResetting && html`<${ResetDialog} group=${group} onClose=${() => setResetting(false)} onDone=${resource.reload} />`}
    <//>
  `;
}

const Details = ({ group }) => html`
  <${KeyValue} pairs=${[
    ["Type", group.type],
    ["Protocol", group.protocol_type || "none (only commits offsets)"],
    ["Coordinator", group.coordinator || undefined],
    ["Assignor", group.assignor || undefined],
    ["Group epoch", group.group_epoch ?? undefined],
    ["Target assignment epoch", group.target_assignment_epoch ?? undefined],
  ]} />
`;
