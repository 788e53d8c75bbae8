// Brokers: the list, and one broker with its log directories, settings and loggers.
import { html } from "../js/ui.js";
import { useResource } from "../js/api.js";
import { Loaded } from "../js/components/states.js";
import { Table } from "../js/components/table.js";
import { Status } from "../js/components/values.js";
import { bytes, number, withUnit } from "../js/format.js";
import { useLive } from "../js/live.js";
import { Page } from "../js/page.js";
import { link } from "../js/router.js";
import Broker from "./brokers/broker.js";

const rate = (name, unit) => (row) => withUnit(row.rates[name], unit);

const COLUMNS = [
  { key: "broker_id", title: "Broker", sort: true, render: (row) => (row.broker_id === "default" ? "All brokers" : row.broker_id) },
  { key: "is_up", title: "Status", sort: true, render: (row) => html`<${Status} kind=${row.is_up ? "good" : "bad"}>${row.is_up ? "up" : "down"}<//>${row.is_controller && html` <${Status}>controller<//>`}` },
  { key: "host", title: "Address", sort: true, render: (row) => `${row.host}:${row.port}` },
  { key: "rack", title: "Rack", sort: true, hideOnPhone: true, render: (row) => row.rack ?? "–" },
  { key: "leaders", title: "Leads", align: "right", sort: "descending", hideOnPhone: true, render: (row) => number(row.leaders) },
  { key: "in_sync_replicas", title: "In sync", align: "right", sort: true, hideOnPhone: true, value: (row) => row.in_sync_replicas - row.replicas, render: (row) => `${number(row.in_sync_replicas)} of ${number(row.replicas)}` },
  { key: "bytes_in", title: "In", align: "right", sort: "descending", value: (row) => row.rates.bytes_in, render: rate("bytes_in", "bytes/s"), hideOnPhone: true },
  { key: "bytes_out", title: "Out", align: "right", sort: "descending", value: (row) => row.rates.bytes_out, render: rate("bytes_out", "bytes/s"), hideOnPhone: true },
  { key: "connections", title: "Connections", align: "right", sort: "descending", value: (row) => row.rates.connections, render: rate("connections", "number"), hideOnPhone: true },
  { key: "memory", title: "Memory", align: "right", sort: "descending", value: (row) => row.rates.memory_bytes, render: (row) => bytes(row.rates.memory_bytes), hideOnPhone: true },
];

export default function Brokers({ segments }) {
  return segments.length > 0 ? html`<${Broker} broker=${segments[0]} />` : html`<${List} />`;
}

function List() {
  const first = useResource("/api/brokers");
  const live = useLive("brokers");
  const resource = live?.value ? { data: live.value, problem: null, isLoading: false } : first;
  return html`
    <${Page} title="Brokers" actions=${html`<a class="button" href=${link("brokers", "default")}>Settings of all brokers</a>`}>
      <${Loaded} resource=${resource} what="brokers">
        ${(rows) => html`<${Table} label="Brokers" columns=${COLUMNS} rows=${rows} rowKey=${(row) => row.broker_id} href=${(row) => link("brokers", row.broker_id)} />`}
      <//>
    <//>
  `;
}
