// Users that log in by SCRAM.
import { html, useState } from "../js/ui.js";
import { change, path } from "../js/api.js";
import { Dialog } from "../js/components/dialog.js";
import { ChangeForm, NumberField, SelectField, TextField } from "../js/components/form.js";
import { toast } from "../js/components/toast.js";
import { Text } from "../js/components/values.js";
import { number } from "../js/format.js";
import { Page } from "../js/page.js";
import { link } from "../js/router.js";
import { askAndChange } from "./common/changing.js";
import { Listing, useListing } from "./common/listing.js";

const MECHANISMS = ["SCRAM-SHA-256", "SCRAM-SHA-512"];

/** A new user, or another password of one: `credential` is {name, mechanism, iterations}. */
function PasswordDialog({ credential, onClose, onDone }) {
  const isNew = credential === null;
  const [name, setName] = useState(credential?.name ?? "");
  const [mechanism, setMechanism] = useState(credential?.mechanism ?? "SCRAM-SHA-512");
  const [iterations, setIterations] = useState(String(credential?.iterations ?? 4096));
  const [password, setPassword] = useState("");
  const [again, setAgain] = useState("");
  const differs = again !== "" && again !== password;
  const save = async () => {
    if (password !== again) throw new Error("The two passwords differ.");
    await change(isNew ? "POST" : "PUT", path`/api/users/${name}`, { password, mechanism, iterations: Number(iterations) });
    toast(isNew ? `The user ${name} was created.` : `${name} has a new password.`);
    onDone();
    onClose();
  };
  return html`
    <${Dialog} title=${isNew ? "Create user" : `New password for ${name}`} onClose=${onClose}>
      <${ChangeForm} action=${isNew ? "Create user" : "Change password"} onSubmit=${save} onCancel=${onClose}>
        ${isNew && html`<${TextField} label="Name" required value=${name} onChange=${setName} />`}
        <${TextField} label="Password" type="password" required autocomplete="new-password" value=${password} onChange=${setPassword} />
        <${TextField} label="Password again" type="password" required autocomplete="new-password" value=${again} onChange=${setAgain} error=${differs ? "The two passwords differ." : ""} />
        <div class="columns">
          <${SelectField} label="Mechanism" value=${mechanism} onChange=${setMechanism} options=${MECHANISMS} disabled=${!isNew} />
          <${NumberField} label="Iterations" min="4096" max="16384" step="1" required value=${iterations} onChange=${setIterations} />
        </div>
      <//>
    <//>
  `;
}

export default function Users() {
  const listing = useListing("/api/users", { every: 5_000 });
  const [dialog, setDialog] = useState(null);
  const remove = async ({ name, mechanism }) => {
    const question = { title: `Remove the user ${name}?`, text: `${name} can no longer log in with ${mechanism}. ACLs and quotas of the user are kept.`, typed: name, action: "Remove user", isDangerous: true };
    const url = `${path`/api/users/${name}`}?mechanism=${encodeURIComponent(mechanism)}`;
    if (await askAndChange(question, "DELETE", url, { done: `${name} was removed.` })) listing.resource.reload();
  };
  const columns = [
    { key: "name", title: "User", render: (row) => html`<${Text}>${row.name}<//>` },
    { key: "mechanism", title: "Mechanism" },
    { key: "iterations", title: "Iterations", align: "right", hideOnPhone: true, render: (row) => number(row.iterations) },
    { key: "acls", title: "ACLs", render: (row) => html`<a href=${link("acls", { principal: `User:${row.name}` })} aria-label=${`ACLs of ${row.name}`}>ACLs</a>` },
    {
      key: "actions",
      title: "Actions",
      align: "right",
      class: "nowrap",
      render: (row) => html`<button type="button" class="small" aria-label=${`New password… for ${row.name}`} onClick=${() => setDialog({ credential: row })}>New password…</button> <button type="button" class="small danger" aria-label=${`Remove… ${row.name}`} onClick=${() => remove(row)}>Remove…</button>`,
    },
  ];
  // Each way in which a user can log in has a row of its own.
  const pageIn = ({ page }) => ({ ...page, rows: page.rows.flatMap(({ name, credentials }) => credentials.map((each) => ({ name, ...each }))) });
  const remark = listing.resource.data?.remark;
  const actions = html`<button type="button" class="primary" onClick=${() => setDialog({ credential: null })}>Create user…</button>`;
  return html`
    <${Page} title="Users" actions=${actions} intro="Users who authenticate with SCRAM. Brokers store only salted hashes of passwords.">
      ${remark && html`<p class="notice">${remark}</p>`}
      <${Listing} listing=${listing} what="users" searchLabel="Search users" columns=${columns} label="Users" rowKey=${(row) => `${row.name} ${row.mechanism}`} pageIn=${pageIn} empty="There are no SCRAM users." />
      ${dialog && html`<${PasswordDialog} credential=${dialog.credential} onClose=${() => setDialog(null)} onDone=${listing.resource.reload} />`}
    <//>
  `;
}
