// One pipeline: its figures, its queries, and what it does, as a picture if it is a streams program.
import { html } from "../../js/ui.js";
import { path, useResource } from "../../js/api.js";
import { Empty, Loaded } from "../../js/components/states.js";
import { Table } from "../../js/components/table.js";
import { Code, Figure, KeyValue, Status, Text } from "../../js/components/values.js";
import { duration, number, time, UNKNOWN } from "../../js/format.js";
import { Page, Section } from "../../js/page.js";
import { rate, stateSize } from "./list.js";
import { Actions } from "./state.js";
import { Topology } from "./topology.js";

const QUERIES = [
  { key: "name", title: "Query", render: (row) => html`<${Text}>${row.name || "without a name"}<//>` },
  { key: "is_active", title: "State", render: (row) => html`<${Status} kind=${row.is_active ? "good" : "neutral"}>${row.is_active ? "active" : "ended"}<//>` },
  { key: "doing", title: "Doing", render: (row) => html`<${Text}>${row.doing}<//>` },
  { key: "id", title: "Id", hideOnPhone: true, render: (row) => html`<code>${row.id}</code>` },
];
const KINDS = { running: "good", failed: "bad", restarting: "warn", interrupted: "warn" };

const Figures = ({ row }) => html`
  <div class="figures">
    <${Figure} label="State" value=${row.state} kind=${KINDS[row.state]} note=${`for ${duration(Math.max(0, Date.now() - row.since_ms))}`} />
    <${Figure} label="Rows in" value=${rate(row.input_rows_per_second)} />
    <${Figure} label="Rows processed" value=${rate(row.processed_rows_per_second)} />
    <${Figure} label="Lag" value=${number(row.lag)} note="records" />
    <${Figure} label="Batch time" value=${duration(row.batch_ms)} note=${row.batches === null ? undefined : `${number(row.batches)} batches`} />
    <${Figure} label="State size" value=${stateSize(row)} />
    <${Figure} label="Restarts" value=${number(row.restarts)} />
  </div>
`;

export function PipelineView({ name }) {
  const resource = useResource(path`/api/pipelines/${name}`, { every: 3_000 });
  const actions = resource.data && html`<${Actions} row=${resource.data.row} onChange=${resource.reload} />`;
  return html`
    <${Page} title=${name} crumbs=${[["Pipelines", "#/pipelines"]]} actions=${actions}>
      <${Loaded} resource=${resource} what="the pipeline">
        ${(data) => html`
          ${data.row.reason &&
          html`<p class=${`notice ${data.row.state === "running" ? "" : "bad"}`}>Last failure${data.row.failed_ms === null ? "" : ` (${time(data.row.failed_ms)})`}: <${Text}>${data.row.reason}<//></p>`}
          <${Figures} row=${data.row} />
          <${Section} title="Queries">
            <${Table} columns=${QUERIES} rows=${data.queries} rowKey=${(row) => row.id} label="Queries" empty="No active queries." />
          <//>
          ${data.topology.length > 0 && html`<${Section} title="Topology"><${Topology} parts=${data.topology} /><//>`}
          <${Section} title="Description">
            ${data.description ? html`<${Code} label="What it does">${data.description}<//>` : html`<${Empty}>Available while the pipeline is running.<//>`}
          <//>
          <${Section} title="Details">
            <${KeyValue} pairs=${[
              ["Program", html`<${Text}>${[data.program, ...data.arguments].join(" ")}<//>`],
              ["Log", html`<${Text}>${data.log}<//>`],
              ["Event time", data.row.stream_time_ms === null ? UNKNOWN : time(data.row.stream_time_ms)],
            ]} />
            <p class="hint pipeline-policy">${data.restart_policy}</p>
          <//>
        `}
      <//>
    <//>
  `;
}
