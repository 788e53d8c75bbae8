// A new version of a schema: it is checked before it is registered.
import { html, useState } from "../../js/ui.js";
import { change } from "../../js/api.js";
import { Dialog } from "../../js/components/dialog.js";
import { ChangeForm, NumberField, SelectField, TextArea, TextField } from "../../js/components/form.js";
import { toast } from "../../js/components/toast.js";
import { Text } from "../../js/components/values.js";

const TYPES = [["AVRO", "Avro"], ["JSON", "JSON Schema"], ["PROTOBUF", "Protobuf"]];

/** Without a `subject` it is of a new one. `schema` is the version to begin with. */
export function NewVersion({ subject, schema, onClose, onDone }) {
  const [name, setName] = useState(subject ?? "");
  const [type, setType] = useState(schema?.type ?? "AVRO");
  const [text, setText] = useState(schema?.formatted ?? "");
  const [references, setReferences] = useState(schema?.references ?? []);
  const [verdict, setVerdict] = useState(null);
  const body = { subject: name, type, schema: text, references: references.map((each) => ({ name: each.name, subject: each.subject, version: Number(each.version) })) };
  const edited = (setter) => (value) => {
    setter(value);
    setVerdict(null);
  };
  const setReference = (index, changes) => edited(setReferences)(references.map((each, at) => (at === index ? { ...each, ...changes } : each)));
  const check = async () => {
    try {
      setVerdict(await change("POST", "/api/schemas/check", body));
    } catch (problem) {
      setVerdict({ is_valid: false, is_compatible: false, reasons: [problem.message] });
    }
  };
  const submit = async () => {
    const registered = await change("POST", "/api/schemas/versions", body);
    toast(`Registered as version ${registered.version}, with id ${registered.id}.`);
    onDone();
  };
  return html`
    <${Dialog} title=${subject ? `New version of ${subject}` : "New schema"} onClose=${onClose} wide>
      <${ChangeForm} action="Register" onSubmit=${submit} onCancel=${onClose} canSubmit=${Boolean(name && text)}>
        <div class="columns">
          ${!subject && html`<${TextField} label="Subject" value=${name} onChange=${edited(setName)} hint="For example orders-value" required />`}
          <${SelectField} label="Type" value=${type} onChange=${edited(setType)} options=${TYPES} />
        </div>
        <${TextArea} label="Schema" rows=${16} value=${text} onChange=${edited(setText)} required />
        ${references.map(
          (each, index) => html`
            <fieldset key=${index} class="columns schemas-reference">
              <legend>Reference ${index + 1}</legend>
              <${TextField} label="Name" value=${each.name} onChange=${(value) => setReference(index, { name: value })} required />
              <${TextField} label="Subject" value=${each.subject} onChange=${(value) => setReference(index, { subject: value })} required />
              <${NumberField} label="Version" min="1" value=${each.version} onChange=${(value) => setReference(index, { version: value })} required />
              <button type="button" class="small" onClick=${() => edited(setReferences)(references.filter((_, at) => at !== index))}>Remove reference ${index + 1}</button>
            </fieldset>
          `,
        )}
        <div class="toolbar">
          <button type="button" onClick=${check} disabled=${!name || !text}>Check compatibility</button>
          <button type="button" class="small" onClick=${() => edited(setReferences)([...references, { name: "", subject: "", version: 1 }])}>Add a reference</button>
        </div>
        ${verdict && html`<${Verdict} verdict=${verdict} />`}
      <//>
    <//>
  `;
}

function Verdict({ verdict }) {
  const { is_valid: isValid, is_compatible: isCompatible, is_new_subject: isNew, reasons } = verdict;
  if (isCompatible) return html`<p class="notice good" role="status">${isNew ? "The schema is valid. The subject has no versions yet." : "The schema is compatible."}</p>`;
  return html`
    <div class="notice bad" role="status">
      <p>${isValid ? "The schema is not compatible." : "The registry rejects the schema."}</p>
      <ul>${reasons.map((reason, index) => html`<li key=${index}><${Text}>${reason}<//></li>`)}</ul>
    </div>
  `;
}
