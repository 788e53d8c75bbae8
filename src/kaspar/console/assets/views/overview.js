// The overview: the cluster's health in one look, and its rates as they are.
import { html } from "../js/ui.js";
import { useResource } from "../js/api.js";
import { Loaded } from "../js/components/states.js";
import { Table } from "../js/components/table.js";
import { Figure, Status, Text } from "../js/components/values.js";
import { count, duration, number, percent } from "../js/format.js";
import { useLive } from "../js/live.js";
import { Page, Section } from "../js/page.js";
import { link } from "../js/router.js";
import { RateCharts } from "./rates.js";

const CANARY = {
  STARTING: ["neutral", "starting"],
  OK: ["good", "records arrive"],
  LATE: ["warn", "records are late"],
  LOSING: ["bad", "records are lost"],
  UNAVAILABLE: ["bad", "no records arrive"],
};

const CHARTS = [
  { title: "Records in", unit: "/s", lines: { messages_in: "records" } },
  { title: "Bytes", unit: "bytes/s", lines: { bytes_in: "in", bytes_out: "out" } },
  { title: "Requests", unit: "/s", lines: { requests: "requests" } },
  { title: "Produce request time, 99th percentile", unit: "ms", lines: { produce_p99_ms: "produce" } },
];

/** What is wrong, the worst first: [kind, sentence, address]. */
function troubles(state, findings) {
  const found = [];
  if (state.controller_id === null) found.push(["bad", "The cluster has no controller.", link("brokers")]);
  if (state.offline.count > 0) found.push(["bad", `${count(state.offline.count, "partition")} without a leader: ${names(state.offline)}`, link("topics", { trouble: "1" })]);
  if (state.brokers_down.length > 0) found.push(["bad", `Down: ${state.brokers_down.map((id) => `broker ${id}`).join(", ")}`, link("brokers")]);
  if (state.under_replicated.count > 0) found.push(["warn", `${count(state.under_replicated.count, "partition")} under-replicated: ${names(state.under_replicated)}`, link("topics", { trouble: "1" })]);
  if (state.canary && !["OK", "STARTING"].includes(state.canary.status)) found.push([CANARY[state.canary.status][0], `The canary: ${CANARY[state.canary.status][1]}. ${state.canary.problem}`, link("doctor")]);
  if (state.groups_in_trouble > 0) found.push(["warn", `${count(state.groups_in_trouble, "group")} falling behind`, link("groups")]);
  for (const finding of findings.filter((each) => each.severity === "problem")) found.push(["bad", `${finding.title} (${finding.resource})`, link("doctor")]);
  return found;
}

const names = ({ count: all, examples }) => examples.join(", ") + (all > examples.length ? " …" : "");

function Health({ state, findings }) {
  const found = troubles(state, findings);
  if (found.length === 0) {
    return html`<p class="overview-health good"><${Status} kind="good">healthy<//> All partitions are in sync, and all groups are keeping up.</p>`;
  }
  return html`
    <div class="overview-health">
      <p><${Status} kind=${found[0][0]}>${found[0][0] === "bad" ? "needs attention" : "check recommended"}<//></p>
      <ul>${found.slice(0, 8).map(([kind, text, address]) => html`<li key=${text} class=${kind}><a href=${address}>${text}</a></li>`)}</ul>
    </div>
  `;
}

function Figures({ state, findings }) {
  const kind = (isBad, bad = "bad") => (isBad ? bad : "good");
  const problems = findings.filter((each) => each.severity === "problem").length;
  const warnings = findings.filter((each) => each.severity === "warning").length;
  const { canary } = state;
  return html`
    <div class="figures">
      <${Figure} label="Brokers up" value=${number(state.brokers)} kind=${kind(state.brokers_down.length > 0)}
        note=${state.controller_id === null ? "no controller" : `controller: ${state.controller_id}`} href=${link("brokers")} />
      <${Figure} label="Topics" value=${number(state.topics)} note=${count(state.partitions, "partition")} href=${link("topics")} />
      <${Figure} label="Under-replicated" value=${number(state.under_replicated.count)} kind=${kind(state.under_replicated.count > 0, "warn")} note="partitions" href=${link("topics", { trouble: "1" })} />
      <${Figure} label="Offline" value=${number(state.offline.count)} kind=${kind(state.offline.count > 0)} note="partitions" href=${link("topics", { trouble: "1" })} />
      <${Figure} label="Groups in trouble" value=${number(state.groups_in_trouble)} kind=${kind(state.groups_in_trouble > 0, "warn")} note=${`of ${number(state.groups)}`} href=${link("groups")} />
      <${Figure} label="Findings" value=${number(problems + warnings)} kind=${problems ? "bad" : kind(warnings > 0, "warn")}
        note=${problems ? count(problems, "problem") : warnings ? count(warnings, "warning") : "from the doctor"} href=${link("doctor")} />
      ${canary &&
      html`<${Figure} label="Canary" value=${percent(canary.consume_availability)} kind=${CANARY[canary.status][0]}
        note=${canary.latency_p99_ms === null ? CANARY[canary.status][1] : `${CANARY[canary.status][1]}, p99 ${duration(canary.latency_p99_ms)}`} />`}
    </div>
  `;
}

const GROUP_COLUMNS = [
  { key: "group", title: "Group", render: (row) => html`<${Text}>${row.group}<//>` },
  { key: "status", title: "Status", render: (row) => html`<${Status} kind=${row.status === "WARN" ? "warn" : "bad"}>${row.status}<//>` },
  { key: "total_lag", title: "Lag, records", align: "right", render: (row) => number(row.total_lag) },
  { key: "max_lag_seconds", title: "Lag, time", align: "right", render: (row) => duration(row.max_lag_seconds === null ? null : row.max_lag_seconds * 1000) },
];

export default function Overview() {
  const first = useResource("/api/overview");
  const live = useLive("overview");
  const findings = useLive("findings")?.value?.severities.flatMap((each) => each.findings) ?? [];
  const resource = live?.value ? { data: live.value, problem: null, isLoading: false } : first;
  return html`
    <${Page} title="Overview">
      <${Loaded} resource=${resource} what="the cluster">
        ${(state) => html`
          <${Health} state=${state} findings=${findings} />
          <${Figures} state=${state} findings=${findings} />
          ${state.worst_groups.length > 0 &&
          html`<${Section} title="Groups in trouble">
            <${Table} label="Groups in trouble" columns=${GROUP_COLUMNS} rows=${state.worst_groups} rowKey=${(row) => row.group} href=${(row) => link("groups", row.group)} />
          <//>`}
        `}
      <//>
      <${Section} title="Rates, the last 15 minutes"><${RateCharts} charts=${CHARTS} /><//>
    <//>
  `;
}
