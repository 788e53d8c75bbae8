// Schemas: the subjects of the registry, their versions, and new ones.
import { html, useState } from "../js/ui.js";
import { change, useResource, withQuery } from "../js/api.js";
import { link, setQuery } from "../js/router.js";
import { Page } from "../js/page.js";
import { confirm } from "../js/components/dialog.js";
import { Checkbox, Search, SelectField } from "../js/components/form.js";
import { Loaded } from "../js/components/states.js";
import { Table } from "../js/components/table.js";
import { toast } from "../js/components/toast.js";
import { Status, Text } from "../js/components/values.js";
import { NewVersion } from "./schemas/editing.js";
import { LEVELS, MODES } from "./schemas/levels.js";
import { Subject } from "./schemas/subject.js";

const LIMIT = 50;

export default function Schemas({ segments, query }) {
  return segments.length === 0 ? html`<${Subjects} query=${query} />` : html`<${Subject} name=${segments[0]} query=${query} />`;
}

const COLUMNS = [
  { key: "subject", title: "Subject", render: (row) => html`<${Text}>${row.subject}<//>` },
  { key: "type", title: "Type", render: (row) => row.type ?? "–" },
  { key: "latest_version", title: "Latest version", align: "right", render: (row) => row.latest_version ?? "–" },
  { key: "latest_id", title: "Id", align: "right", hideOnPhone: true, render: (row) => row.latest_id ?? "–" },
  { key: "is_deleted", title: "State", hideOnPhone: true, render: (row) => row.is_deleted && html`<${Status} kind="warn">deleted<//>` },
];

function Subjects({ query }) {
  const [isNew, setNew] = useState(false);
  const search = query.get("search") ?? "";
  const offset = Number(query.get("offset") ?? 0);
  const withDeleted = query.get("deleted") === "1";
  const resource = useResource(withQuery("/api/schemas", { search, offset, limit: LIMIT, deleted: withDeleted && "1" }));
  const actions = html`<button type="button" class="primary" onClick=${() => setNew(true)}>New schema…</button>`;
  return html`
    <${Page} title="Schemas" actions=${resource.data && actions}>
      <div class="toolbar">
        <${Search} label="Find a subject" value=${search} onChange=${(value) => setQuery({ search: value, offset: "" })} />
        <${Checkbox} label="Include deleted" value=${withDeleted} onChange=${(value) => setQuery({ deleted: value ? "1" : "", offset: "" })} />
      </div>
      <${Loaded} resource=${resource} what="schemas">
        ${(data) => html`
          <${Table} label="Subjects" columns=${COLUMNS} rows=${data.subjects} rowKey=${(row) => row.subject} href=${(row) => link("schemas", row.subject)}
            sorting=${{ sort: null, onSort: () => undefined }} page=${{ offset, limit: LIMIT, total: data.total, onPage: (to) => setQuery({ offset: to || "" }) }}
            empty=${search ? "No matching subject." : "There are no schemas yet."} />
          <${Defaults} data=${data} reload=${resource.reload} />
        `}
      <//>
      ${isNew && html`<${NewVersion} onClose=${() => setNew(false)} onDone=${() => (setNew(false), resource.reload())} />`}
    <//>
  `;
}

/** The compatibility level and the mode of subjects that have none of their own. */
function Defaults({ data, reload }) {
  const set = (what, text) => async (value) => {
    if (!(await confirm({ title: `Change the ${text}?`, text: `All subjects without their own setting will use ${value}.`, action: "Change" }))) return reload();
    try {
      await change("PUT", `/api/schemas/${what}`, { subject: null, value });
      toast(`The ${text} is now ${value}.`);
    } catch (problem) {
      toast(problem.message, "bad");
    }
    return reload();
  };
  return html`
    <section class="schemas-defaults columns">
      <${SelectField} label="Default compatibility" value=${data.compatibility.value ?? ""} options=${LEVELS} onChange=${set("compatibility", "default compatibility")} />
      <${SelectField} label="Mode" value=${data.mode.value ?? ""} options=${MODES} onChange=${set("mode", "mode")} />
      <p class="hint">Registry: ${data.urls.join(", ")}</p>
    </section>
  `;
}
