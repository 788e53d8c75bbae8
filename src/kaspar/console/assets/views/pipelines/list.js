// All pipelines of the folder, with the figures of their last micro-batches.
import { html } from "../../js/ui.js";
import { useResource } from "../../js/api.js";
import { Loaded } from "../../js/components/states.js";
import { Table } from "../../js/components/table.js";
import { Text } from "../../js/components/values.js";
import { bytes, compact, duration, number, UNKNOWN } from "../../js/format.js";
import { Page } from "../../js/page.js";
import { link } from "../../js/router.js";
import { Actions, State } from "./state.js";

const EVERY_MS = 3_000;
export const rate = (value) => (value === null ? UNKNOWN : `${compact(value)}/s`);
export const stateSize = (row) => (row.state_bytes !== null ? bytes(row.state_bytes) : row.state_rows !== null ? `${number(row.state_rows)} rows` : UNKNOWN);

const columnsOf = (onChange) => [
  { key: "name", title: "Pipeline", sort: true, render: (row) => html`<${Text}>${row.name}<//>` },
  { key: "state", title: "State", sort: true, render: (row) => html`<${State} state=${row.state} />${row.reason && row.state !== "running" && html`<div class="hint"><${Text}>${row.reason}<//></div>`}` },
  { key: "processed_rows_per_second", title: "Rows", sort: "descending", align: "right", render: (row) => rate(row.processed_rows_per_second) },
  { key: "lag", title: "Lag", sort: "descending", align: "right", render: (row) => number(row.lag) },
  { key: "batch_ms", title: "Batch time", sort: "descending", align: "right", hideOnPhone: true, render: (row) => duration(row.batch_ms) },
  { key: "state_size", title: "State size", align: "right", hideOnPhone: true, value: (row) => row.state_bytes ?? row.state_rows, render: stateSize },
  { key: "restarts", title: "Restarts", sort: "descending", align: "right", hideOnPhone: true, render: (row) => number(row.restarts) },
  { key: "since_ms", title: "Since", sort: true, align: "right", hideOnPhone: true, render: (row) => duration(Math.max(0, Date.now() - row.since_ms)) },
  { key: "actions", title: "Actions", align: "right", hideOnPhone: true, class: "nowrap", render: (row) => html`<${Actions} row=${row} onChange=${onChange} small />` },
];

export function PipelineList() {
  const resource = useResource("/api/pipelines", { every: EVERY_MS });
  return html`
    <${Page} title="Pipelines">
      <${Loaded} resource=${resource} what="pipelines">
        ${(data) => html`
          ${data.remark && html`<p class="notice">${data.remark}</p>`}
          <${Table} columns=${columnsOf(resource.reload)} rows=${data.rows} rowKey=${(row) => row.name} href=${(row) => link("pipelines", row.name)} label="Pipelines"
            empty="There are no pipelines. 'kaspar pipeline run PROGRAM' runs one." />
        `}
      <//>
    <//>
  `;
}
