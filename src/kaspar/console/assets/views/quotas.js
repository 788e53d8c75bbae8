// Quotas of users, client ids and IP addresses.
import { html, useState } from "../js/ui.js";
import { change } from "../js/api.js";
import { Dialog } from "../js/components/dialog.js";
import { ChangeForm, NumberField, SelectField, TextField } from "../js/components/form.js";
import { toast } from "../js/components/toast.js";
import { Text } from "../js/components/values.js";
import { bytes, number, UNKNOWN } from "../js/format.js";
import { Page } from "../js/page.js";
import { askAndChange } from "./common/changing.js";
import { Listing, useListing } from "./common/listing.js";

const KINDS = {
  producer_byte_rate: { title: "Produce", unit: "bytes per second", show: (value) => `${bytes(value)}/s` },
  consumer_byte_rate: { title: "Fetch", unit: "bytes per second", show: (value) => `${bytes(value)}/s` },
  request_percentage: { title: "Request time", unit: "percent of a thread", show: (value) => `${number(value)} %` },
  controller_mutation_rate: { title: "Partition changes", unit: "partitions per second", show: (value) => `${number(value)}/s` },
  connection_creation_rate: { title: "New connections", unit: "per second", show: (value) => `${number(value)}/s` },
};
const OF_CLIENTS = ["producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"];
const WHO = [
  ["user", "a user"],
  ["client-id", "a client id"],
  ["both", "a user with a client id"],
  ["ip", "an IP address"],
];
const TYPES = { user: ["user"], "client-id": ["client-id"], both: ["user", "client-id"], ip: ["ip"] };
const LABELS = { user: "User", "client-id": "Client id", ip: "IP address" };

const whoText = (entity) => entity.map(({ type, name }) => `${type} ${name === null ? "(default)" : name}`).join(", ");

const Who = ({ entity }) =>
  entity.map(({ type, name }) => html`<div key=${type}>${LABELS[type]} ${name === null ? html`<em>all others</em>` : html`<${Text}>${name}<//>`}</div>`);

/** The fields of an entity that is new: who, and whether it is the default. */
function EntityFields({ who, names, onWho, onName }) {
  return html`
    <${SelectField} label="For" value=${who} onChange=${onWho} options=${WHO} />
    ${TYPES[who].map((type) => html`<${TextField} key=${type} label=${LABELS[type]} hint="Empty: all without their own quota." value=${names[type] ?? ""} onChange=${(name) => onName(type, name)} />`)}
  `;
}

function QuotaDialog({ row, onClose, onDone }) {
  const [who, setWho] = useState("user");
  const [names, setNames] = useState({});
  const [values, setValues] = useState(Object.fromEntries(Object.entries(row?.values ?? {}).map(([key, value]) => [key, String(value)])));
  const entity = row?.entity ?? TYPES[who].map((type) => ({ type, name: names[type] || null }));
  const kinds = entity.some(({ type }) => type === "ip") ? ["connection_creation_rate"] : OF_CLIENTS;
  const save = async () => {
    const wanted = Object.fromEntries(kinds.map((kind) => [kind, values[kind] ? Number(values[kind]) : null]));
    await change("PUT", "/api/quotas", { entity, values: wanted, seen: row?.values ?? {} });
    toast(`The quotas of ${whoText(entity)} were saved.`);
    onDone();
    onClose();
  };
  return html`
    <${Dialog} title=${row ? `Quotas of ${whoText(entity)}` : "Add quotas"} onClose=${onClose}>
      <${ChangeForm} action="Save" onSubmit=${save} onCancel=${onClose}>
        ${!row && html`<${EntityFields} who=${who} names=${names} onWho=${setWho} onName=${(type, name) => setNames({ ...names, [type]: name })} />`}
        ${kinds.map((kind) => html`<${NumberField} key=${kind} label=${KINDS[kind].title} hint=${`${KINDS[kind].unit}; empty: no quota`} min="0" step="any"
          value=${values[kind] ?? ""} onChange=${(value) => setValues({ ...values, [kind]: value })} />`)}
      <//>
    <//>
  `;
}

export default function Quotas() {
  const listing = useListing("/api/quotas", { every: 5_000 });
  const [editing, setEditing] = useState(null);
  const remove = async (row) => {
    const question = { title: `Remove the quotas of ${whoText(row.entity)}?`, text: "More general quotas then apply, if any.", action: "Remove", isDangerous: true };
    const values = Object.fromEntries(Object.keys(row.values).map((kind) => [kind, null]));
    const body = { entity: row.entity, values, seen: row.values };
    if (await askAndChange(question, "PUT", "/api/quotas", { body, done: "The quotas were removed." })) listing.resource.reload();
  };
  const columns = [
    { key: "who", title: "For", render: (row) => html`<${Who} entity=${row.entity} />` },
    ...Object.entries(KINDS).map(([kind, { title, show }]) => ({
      key: kind,
      title,
      align: "right",
      render: (row) => (kind in row.values ? show(row.values[kind]) : UNKNOWN),
    })),
    {
      key: "actions",
      title: "Actions",
      align: "right",
      class: "nowrap",
      render: (row) => html`<button type="button" class="small" aria-label=${`Edit… ${whoText(row.entity)}`} onClick=${() => setEditing({ row })}>Edit…</button> <button type="button" class="small danger" aria-label=${`Remove… ${whoText(row.entity)}`} onClick=${() => remove(row)}>Remove…</button>`,
    },
  ];
  const actions = html`<button type="button" class="primary" onClick=${() => setEditing({ row: null })}>Add quotas…</button>`;
  return html`
    <${Page} title="Quotas" actions=${actions} intro="Limits beyond which brokers throttle clients. The most specific quota applies.">
      <${Listing} listing=${listing} what="quotas" searchLabel="Search quotas" columns=${columns} label="Quotas" rowKey=${(row) => whoText(row.entity)} empty="There are no quotas." />
      ${editing && html`<${QuotaDialog} row=${editing.row} onClose=${() => setEditing(null)} onDone=${listing.resource.reload} />`}
    <//>
  `;
}
