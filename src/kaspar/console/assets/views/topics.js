// Topics: the list, and one topic.
import { html, useState } from "../js/ui.js";
import { Checkbox } from "../js/components/form.js";
import { Status } from "../js/components/values.js";
import { bytes, number } from "../js/format.js";
import { Page } from "../js/page.js";
import { link } from "../js/router.js";
import { Listing, useListing } from "./common/listing.js";
import { CreateTopic } from "./topics/create.js";
import Topic from "./topics/topic.js";

const health = (row) => {
  if (row.offline > 0) return html`<${Status} kind="bad">${number(row.offline)} offline<//>`;
  if (row.under_replicated > 0) return html`<${Status} kind="warn">${number(row.under_replicated)} under-replicated<//>`;
  return html`<${Status} kind="good">in sync<//>`;
};

const COLUMNS = [
  { key: "name", title: "Topic", sort: true },
  { key: "under_replicated", title: "Replicas", sort: "descending", render: health },
  { key: "partitions", title: "Partitions", align: "right", sort: "descending", hideOnPhone: true, render: (row) => number(row.partitions) },
  { key: "replication_factor", title: "Replication factor", align: "right", sort: "descending", hideOnPhone: true },
  { key: "records", title: "Records", align: "right", hideOnPhone: true, render: (row) => number(row.records) },
  { key: "size", title: "Size", align: "right", sort: "descending", render: (row) => bytes(row.size) },
];

export default function Topics({ segments }) {
  return segments.length > 0 ? html`<${Topic} name=${segments[0]} />` : html`<${List} />`;
}

function List() {
  const [isCreating, setCreating] = useState(false);
  const listing = useListing("/api/topics", { filters: ["internal", "trouble"], sort: { key: "name", descending: false }, every: 5_000 });
  const { chosen, choose } = listing;
  const create = html`<button type="button" class="primary" onClick=${() => setCreating(true)}>Create topic</button>`;
  const filter = (name, label) => html`<${Checkbox} label=${label} value=${chosen[name] === "1"} onChange=${(is) => choose({ [name]: is ? "1" : "" })} />`;
  return html`
    <${Page} title="Topics" actions=${create}>
      <${Listing} listing=${listing} what="topics" searchLabel="Search topics" label="Topics" columns=${COLUMNS}
        filters=${html`${filter("internal", "Internal")}${filter("trouble", "Only unhealthy")}`}
        rowKey=${(row) => row.name} href=${(row) => link("topics", row.name)} empty="There are no topics yet. Create one, or let a producer create it." />
      ${isCreating && html`<${CreateTopic} onClose=${() => setCreating(false)} />`}
    <//>
  `;
}
