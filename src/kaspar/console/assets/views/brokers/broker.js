// One broker, or what all of them share ("default").
import { html } from "../../js/ui.js";
import { path, useResource } from "../../js/api.js";
import { Loaded } from "../../js/components/states.js";
import { Table } from "../../js/components/table.js";
import { Tabs } from "../../js/components/tabs.js";
import { KeyValue, Status } from "../../js/components/values.js";
import { bytes, number, percent } from "../../js/format.js";
import { useLive } from "../../js/live.js";
import { Page, Section } from "../../js/page.js";
import { link } from "../../js/router.js";
import { Configs } from "../configs.js";
import { RateCharts } from "../rates.js";

const CHARTS = [
  { title: "Bytes", unit: "bytes/s", lines: { bytes_in: "in", bytes_out: "out" } },
  { title: "Requests", unit: "/s", lines: { requests: "requests" } },
  { title: "Produce request time, 99th percentile", unit: "ms", lines: { produce_p99_ms: "produce" } },
  { title: "CPU, cores", unit: "number", lines: { cpu: "cores" } },
  { title: "Memory", unit: "bytes", lines: { memory_bytes: "memory" } },
  { title: "Connections", unit: "number", lines: { connections: "connections" } },
];

export default function Broker({ broker }) {
  if (broker === "default") {
    return html`
      <${Page} title="All brokers" crumbs=${[["Brokers", link("brokers")]]} intro="Settings for every broker without its own value.">
        <${Configs} url="/api/brokers/default/settings" what="all brokers" />
      <//>
    `;
  }
  const tabs = [
    { name: "now", title: "Now", render: () => html`<${Now} broker=${broker} />` },
    { name: "log-dirs", title: "Log directories", render: () => html`<${LogDirs} broker=${broker} />` },
    { name: "settings", title: "Settings", render: () => html`<${Configs} url=${path`/api/brokers/${broker}/settings`} what=${`broker ${broker}`} />` },
    { name: "loggers", title: "Loggers", render: () => html`<${Configs} url=${path`/api/brokers/${broker}/loggers`} what=${`broker ${broker}`} isLogger=${true} />` },
  ];
  return html`
    <${Page} title=${`Broker ${broker}`} crumbs=${[["Brokers", link("brokers")]]}>
      <${Tabs} label=${`Broker ${broker}`} tabs=${tabs} />
    <//>
  `;
}

function Now({ broker }) {
  const first = useResource("/api/brokers");
  const live = useLive("brokers");
  const rows = live?.value ?? first.data;
  const row = rows?.find((each) => String(each.broker_id) === broker);
  if (rows && !row) return html`<p class="state">The cluster has no broker ${broker}.</p>`;
  return html`
    <${Loaded} resource=${{ ...first, data: row ?? null }} what="the broker">
      ${(known) => html`
        <div class="panel">
          <${KeyValue}
            pairs=${[
              ["Status", html`<${Status} kind=${known.is_up ? "good" : "bad"}>${known.is_up ? "up" : "down"}<//>${known.is_controller && html` <${Status}>controller<//>`}`],
              ["Address", `${known.host}:${known.port}`],
              ["Rack", known.rack],
              ["Leads", `${number(known.leaders)} partitions`],
              ["Replicas in sync", `${number(known.in_sync_replicas)} of ${number(known.replicas)}`],
            ]}
          />
        </div>
        <${Section} title="Rates, the last 15 minutes"><${RateCharts} charts=${CHARTS} broker=${known.broker_id} /><//>
      `}
    <//>
  `;
}

const SIZE_COLUMNS = [
  { key: "topic", title: "Topic", sort: true, render: (row) => row.topic },
  { key: "partition", title: "Partition", align: "right", sort: true, render: (row) => row.partition },
  { key: "size", title: "Size", align: "right", sort: "descending", render: (row) => bytes(row.size) },
  { key: "offset_lag", title: "Behind the leader", align: "right", sort: "descending", render: (row) => number(row.offset_lag) },
  { key: "is_future", title: "Moving", hideOnPhone: true, render: (row) => row.is_future && html`<${Status} kind="warn">moving here<//>` },
];

function LogDirs({ broker }) {
  const resource = useResource(path`/api/brokers/${broker}/log-dirs`, { every: 10_000 });
  return html`
    <${Loaded} resource=${resource} what="log directories">
      ${(dirs) =>
        dirs.map((dir) => {
          const used = dir.total_bytes ? 1 - dir.usable_bytes / dir.total_bytes : null;
          return html`
            <${Section} key=${dir.path} title=${dir.path}>
              <div class="panel">
                <${KeyValue}
                  pairs=${[
                    ["Status", html`<${Status} kind=${dir.problem ? "bad" : "good"}>${dir.problem || "online"}<//>`],
                    ["Replicas", number(dir.replicas)],
                    ["Size of its logs", bytes(dir.size)],
                    ["File system", dir.total_bytes === null ? undefined : `${bytes(dir.usable_bytes)} free of ${bytes(dir.total_bytes)}`],
                    ["Used", used === null ? undefined : html`<${Status} kind=${used > 0.95 ? "bad" : used > 0.85 ? "warn" : "good"}>${percent(used)}<//>`],
                  ]}
                />
              </div>
              <h3 class="brokers-largest">Largest partitions</h3>
              <${Table} label=${`Largest partitions in ${dir.path}`} columns=${SIZE_COLUMNS} rows=${dir.largest} href=${(row) => link("topics", row.topic)}
                rowKey=${(row) => `${row.topic}-${row.partition}-${row.is_future}`} empty="No partitions." />
            <//>
          `;
        })}
    <//>
  `;
}
