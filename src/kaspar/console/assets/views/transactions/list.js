// The transactional ids, with the states of their last transactions.
import { html } from "../../js/ui.js";
import { Text } from "../../js/components/values.js";
import { number, UNKNOWN } from "../../js/format.js";
import { link } from "../../js/router.js";
import { CountedFilter, Listing, useListing } from "../common/listing.js";
import { openFor, Phase, timeoutOf } from "./phase.js";

const COLUMNS = [
  { key: "transactional_id", title: "Transactional id", sort: true, render: (row) => html`<${Text}>${row.transactional_id}<//>` },
  { key: "state", title: "State", sort: true, render: (row) => html`<${Phase} transaction=${row} />` },
  { key: "open", title: "Open for", align: "right", render: openFor },
  { key: "timeout", title: "Timeout", align: "right", hideOnPhone: true, render: timeoutOf },
  { key: "partitions", title: "Partitions", align: "right", hideOnPhone: true, render: (row) => number(row.partitions.length) },
  { key: "producer_id", title: "Producer", sort: true, align: "right", hideOnPhone: true },
  { key: "producer_epoch", title: "Epoch", align: "right", hideOnPhone: true, render: (row) => row.producer_epoch ?? UNKNOWN },
  { key: "coordinator_id", title: "Coordinator", sort: true, align: "right", hideOnPhone: true },
];

export function TransactionList() {
  const listing = useListing("/api/transactions", { filters: ["phase"], sort: { key: "transactional_id", descending: false }, every: 5_000 });
  const { chosen, choose, resource } = listing;
  const filters = html`<${CountedFilter} label="Phase" counts=${resource.data?.phases} value=${chosen.phase} onChange=${(phase) => choose({ phase })} />`;
  return html`
    <${Listing} listing=${listing} what="transactions" searchLabel="Search transactional ids" filters=${filters} columns=${COLUMNS} label="Transactional ids"
      rowKey=${(row) => row.transactional_id} href=${(row) => link("transactions", row.transactional_id)}
      empty="There are no transactional ids. A producer with a transactional.id creates one." />
  `;
}
