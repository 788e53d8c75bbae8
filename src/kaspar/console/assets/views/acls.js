// ACLs: who may do what. Listed by a filter, added with a preview, removed one by one or as the filter shows them.
import { html, useState } from "../js/ui.js";
import { change, get, withQuery } from "../js/api.js";
import { confirm } from "../js/components/dialog.js";
import { SelectField, TextField } from "../js/components/form.js";
import { toast } from "../js/components/toast.js";
import { Status, Text } from "../js/components/values.js";
import { count, number } from "../js/format.js";
import { Page } from "../js/page.js";
import { AddDialog } from "./acls/add.js";
import { OPERATIONS, sentence, TYPES, words } from "./acls/words.js";
import { Listing, useListing } from "./common/listing.js";

const FILTERS = ["resource_type", "resource_name", "pattern_type", "principal", "operation", "permission_type"];
const AT_ONCE = 500;

const columnsOf = (onRemove) => [
  { key: "principal", title: "Principal", render: (row) => html`<${Text}>${row.principal}<//>` },
  { key: "permission_type", title: "Permission", render: (row) => html`<${Status} kind=${row.permission_type === "DENY" ? "bad" : "good"}>${words(row.permission_type)}<//>` },
  { key: "operation", title: "Operation", render: (row) => words(row.operation) },
  { key: "resource", title: "Resource", render: (row) => html`${words(row.resource_type)} <${Text}>${row.resource_name}<//>${row.pattern_type === "PREFIXED" && html`<span class="hint"> and all that start so</span>`}` },
  { key: "host", title: "Host", hideOnPhone: true, render: (row) => html`<${Text}>${row.host}<//>` },
  { key: "actions", title: "Actions", align: "right", render: (row) => html`<button type="button" class="small danger" aria-label=${`Remove… ${sentence(row)}`} onClick=${() => onRemove([row])}>Remove…</button>` },
];

function Filters({ chosen, choose }) {
  const set = (name) => (value) => choose({ [name]: value });
  const options = (names) => [["", "any"], ...names.map((name) => [name, words(name)])];
  return html`
    <div class="columns filters">
      <${TextField} label="Principal" value=${chosen.principal} onChange=${set("principal")} placeholder="User:alice" data-search />
      <${SelectField} label="Resource" value=${chosen.resource_type} onChange=${set("resource_type")} options=${options(TYPES)} />
      <${TextField} label="Name" value=${chosen.resource_name} onChange=${set("resource_name")} />
      <${SelectField} label="Pattern" value=${chosen.pattern_type} onChange=${set("pattern_type")}
        options=${[["", "any"], ["LITERAL", "this name"], ["PREFIXED", "this prefix"], ["MATCH", "all that match the name"]]} />
      <${SelectField} label="Operation" value=${chosen.operation} onChange=${set("operation")} options=${options(OPERATIONS)} />
      <${SelectField} label="Permission" value=${chosen.permission_type} onChange=${set("permission_type")} options=${options(["ALLOW", "DENY"])} />
    </div>
  `;
}

export default function Acls() {
  const listing = useListing("/api/acls", { filters: FILTERS, every: 5_000 });
  const [isAdding, setAdding] = useState(false);
  const { chosen, choose, resource } = listing;
  const remove = async (acls) => {
    const question = { title: `Remove ${count(acls.length, "ACL")}?`, details: acls.map(sentence), action: "Remove", isDangerous: true };
    if (!(await confirm(question))) return;
    try {
      const { removed, missing } = await change("POST", "/api/acls/remove", { acls });
      toast(`${count(removed.length, "ACL")} removed.${missing > 0 ? ` ${number(missing)} had already been removed.` : ""}`);
    } catch (problem) {
      toast(problem.message, "bad");
    }
    resource.reload();
  };
  const removeAll = async () => {
    const found = await get(withQuery("/api/acls", { ...chosen, limit: AT_ONCE }));
    await remove(found.rows);
  };
  const data = resource.data;
  const isFiltered = FILTERS.some((name) => chosen[name]);
  const actions = data?.is_secured && html`
    ${isFiltered && data.matching > 1 && html`<button type="button" class="danger" onClick=${removeAll}>Remove ${data.matching > AT_ONCE ? `the first ${AT_ONCE}` : `these ${data.matching}`}…</button>`}
    <button type="button" class="primary" onClick=${() => setAdding(true)}>Add ACLs…</button>
  `;
  return html`
    <${Page} title="ACLs" actions=${actions}>
      ${data?.is_secured === false
        ? html`<p class="notice">${data.remark}</p>`
        : html`
            <${Filters} chosen=${chosen} choose=${choose} />
            <${Listing} listing=${listing} what="ACLs" columns=${columnsOf(remove)} label="ACLs" rowKey=${sentence} empty="There are no ACLs." />
          `}
      ${isAdding && html`<${AddDialog} onClose=${() => setAdding(false)} onDone=${resource.reload} />`}
    <//>
  `;
}
