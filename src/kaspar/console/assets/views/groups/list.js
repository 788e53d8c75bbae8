// All groups, with their lag.
import { html } from "../../js/ui.js";
import { Text } from "../../js/components/values.js";
import { duration, number, UNKNOWN } from "../../js/format.js";
import { Page } from "../../js/page.js";
import { link } from "../../js/router.js";
import { CountedFilter, Listing, useListing } from "../common/listing.js";
import { GroupState, LagStatus } from "./status.js";

const seconds = (value) => (value === null ? UNKNOWN : duration(value * 1000));

const COLUMNS = [
  { key: "group", title: "Group", sort: true, render: (row) => html`<${Text}>${row.group_id}<//>` },
  { key: "status", title: "Lag status", sort: "descending", render: (row) => html`<${LagStatus} status=${row.status} />` },
  { key: "state", title: "State", sort: true, hideOnPhone: true, render: (row) => html`<${GroupState} state=${row.state} />` },
  { key: "members", title: "Members", align: "right", hideOnPhone: true, render: (row) => number(row.members) },
  { key: "lag", title: "Lag", sort: "descending", align: "right", render: (row) => number(row.total_lag) },
  { key: "lag_seconds", title: "Behind", sort: "descending", align: "right", hideOnPhone: true, render: (row) => seconds(row.max_lag_seconds) },
  { key: "type", title: "Type", sort: true, hideOnPhone: true, render: (row) => (row.protocol_type && row.protocol_type !== "consumer" ? `${row.type} (${row.protocol_type})` : row.type) },
];

export function GroupList() {
  const listing = useListing("/api/groups", { filters: ["state", "type", "status"], sort: { key: "group", descending: false }, every: 5_000 });
  const { chosen, choose, resource } = listing;
  const filters = [
    ["status", "Lag status", resource.data?.statuses],
    ["state", "State", resource.data?.states],
    ["type", "Type", resource.data?.types],
  ].map(([name, label, counts]) => html`<${CountedFilter} key=${name} label=${label} counts=${counts} value=${chosen[name]} onChange=${(value) => choose({ [name]: value })} />`);
  return html`
    <${Page} title="Groups">
      <${Listing} listing=${listing} what="groups" searchLabel="Search groups" filters=${filters} columns=${COLUMNS} label="Groups"
        rowKey=${(row) => row.group_id} href=${(row) => link("groups", row.group_id)} empty="There are no groups. A consumer with a group.id creates one." />
    <//>
  `;
}
