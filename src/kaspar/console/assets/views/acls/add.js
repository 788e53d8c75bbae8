// Adds ACLs in two steps: what, and then what that means for the resources that exist.
import { html, useState } from "../../js/ui.js";
import { change } from "../../js/api.js";
import { Dialog } from "../../js/components/dialog.js";
import { ChangeForm, Checkbox, SelectField, TextField } from "../../js/components/form.js";
import { toast } from "../../js/components/toast.js";
import { Text } from "../../js/components/values.js";
import { count } from "../../js/format.js";
import { OPERATIONS_OF, sentence, TYPES, words } from "./words.js";

const CLUSTER = "kafka-cluster";

function aclsOf({ resource_type, resource_name, pattern_type, principal, host, operations, permission_type }) {
  const isCluster = resource_type === "CLUSTER";
  return operations.map((operation) => ({
    resource_type,
    resource_name: isCluster ? CLUSTER : resource_name,
    pattern_type: isCluster ? "LITERAL" : pattern_type,
    principal: principal.includes(":") ? principal : `User:${principal}`,
    host: host || "*",
    operation,
    permission_type,
  }));
}

function Choice({ chosen, onChange, onPreview, onClose }) {
  const set = (name) => (value) => onChange({ ...chosen, [name]: value });
  const toggle = (operation) => (isOn) => {
    const others = chosen.operations.filter((each) => each !== operation);
    onChange({ ...chosen, operations: isOn ? [...others, operation] : others });
  };
  const chooseType = (resource_type) => onChange({ ...chosen, resource_type, operations: chosen.operations.filter((each) => OPERATIONS_OF[resource_type].includes(each)) });
  return html`
    <${ChangeForm} action="Preview" onSubmit=${onPreview} onCancel=${onClose} canSubmit=${chosen.operations.length > 0}>
      <div class="columns">
        <${TextField} label="Principal" hint="alice is User:alice; User:* is everyone." required value=${chosen.principal} onChange=${set("principal")} />
        <${TextField} label="Host" hint="An address; * is any." value=${chosen.host} onChange=${set("host")} />
        <${SelectField} label="Permission" value=${chosen.permission_type} onChange=${set("permission_type")} options=${[["ALLOW", "allow"], ["DENY", "deny"]]} />
      </div>
      <div class="columns">
        <${SelectField} label="Resource" value=${chosen.resource_type} onChange=${chooseType} options=${TYPES.map((name) => [name, words(name)])} />
        ${chosen.resource_type !== "CLUSTER" &&
        html`
          <${TextField} label="Name" hint="* matches all." required value=${chosen.resource_name} onChange=${set("resource_name")} />
          <${SelectField} label="Pattern" value=${chosen.pattern_type} onChange=${set("pattern_type")} options=${[["LITERAL", "this name"], ["PREFIXED", "all that start so"]]} />
        `}
      </div>
      <fieldset>
        <legend>Operations</legend>
        <div class="columns">
          ${OPERATIONS_OF[chosen.resource_type].map((name) => html`<${Checkbox} key=${name} label=${words(name)} value=${chosen.operations.includes(name)} onChange=${toggle(name)} />`)}
        </div>
      </fieldset>
    <//>
  `;
}

function Addition({ addition: { acl, exists, matches, examples, denied_by: denials } }) {
  const named = examples.length > 0 && html`: ${examples.map((name, at) => html`${at > 0 && ", "}<${Text} key=${name}>${name}<//>`)}${matches > examples.length && " …"}`;
  return html`
    <li>
      <${Text}>${sentence(acl)}<//>
      ${exists && html`<div class="hint">It exists already.</div>`}
      ${matches !== null && html`<div class="hint">It is about ${count(matches, "resource")} now${named}</div>`}
      ${denials.length > 0 && html`<div class="notice warn">Still denied by: ${denials.map(sentence).join("; ")}</div>`}
    </li>
  `;
}

export function AddDialog({ onClose, onDone }) {
  const [chosen, setChosen] = useState({ principal: "", host: "*", permission_type: "ALLOW", resource_type: "TOPIC", resource_name: "", pattern_type: "LITERAL", operations: [] });
  const [additions, setAdditions] = useState(null);
  const look = async () => setAdditions(await change("POST", "/api/acls/preview", { acls: aclsOf(chosen) }));
  const add = async () => {
    await change("POST", "/api/acls", { acls: additions.map((each) => each.acl) });
    toast(`${count(additions.length, "ACL")} added.`);
    onDone();
    onClose();
  };
  return html`
    <${Dialog} title="Add ACLs" wide onClose=${onClose}>
      ${additions === null
        ? html`<${Choice} chosen=${chosen} onChange=${setChosen} onPreview=${look} onClose=${onClose} />`
        : html`
            <${ChangeForm} action=${`Add ${count(additions.length, "ACL")}`} onSubmit=${add} onCancel=${() => setAdditions(null)}>
              <ul class="details">${additions.map((each) => html`<${Addition} key=${sentence(each.acl)} addition=${each} />`)}</ul>
            <//>
          `}
    <//>
  `;
}
