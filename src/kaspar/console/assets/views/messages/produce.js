// Writes one record.
import { html, useState } from "../../js/ui.js";
import { change, path } from "../../js/api.js";
import { ChangeForm, NumberField, SelectField, TextArea, TextField } from "../../js/components/form.js";
import { Dialog } from "../../js/components/dialog.js";
import { toast } from "../../js/components/toast.js";

const FORMATS = [["text", "text"], ["json", "JSON"], ["schema", "by schema (JSON)"], ["hex", "hex"], ["integer", "integer (64 bits)"], ["null", "null"]];
const SCHEMA_KINDS = ["avro", "json-schema", "protobuf"];

const empty = (format = "text") => ({ format, data: "", subject: "", schema_id: null });

/** A part of the form from a record that is to be edited. */
function partOf(content, subject) {
  if (SCHEMA_KINDS.includes(content.kind)) {
    return { format: "schema", data: content.text, subject: content.schema?.subject ?? subject, schema_id: content.schema?.id ?? null };
  }
  const format = ["json", "hex", "integer", "null"].includes(content.kind) ? content.kind : "text";
  return { ...empty(format), data: content.text };
}

/** An empty part: by a schema if the record `like` has one, so that no plain JSON is written among records with schemas. */
const emptyLike = (content, subject, format) =>
  SCHEMA_KINDS.includes(content?.kind) ? { ...empty("schema"), subject: content.schema?.subject ?? subject } : empty(format);

const initial = (topic, record, like) =>
  record
    ? {
        key: partOf(record.key, `${topic}-key`),
        value: partOf(record.value, `${topic}-value`),
        headers: record.headers.map(({ name, value }) => ({ name, ...partOf(value, "") })),
      }
    : {
        key: emptyLike(like?.key, `${topic}-key`, "null"),
        value: emptyLike(like?.value, `${topic}-value`, "json"),
        headers: [],
      };

const body = ({ format, data, subject, schema_id: id }) => ({
  format,
  data: format === "null" ? "" : data,
  ...(format === "schema" && (id ? { schema_id: id } : { subject })),
});

/** `record` is one whose values the form begins with; `like` is one of the topic, which shows whether it has schemas. */
export function Produce({ topic, record, like, onClose, onDone }) {
  const [target, setTarget] = useState(topic);
  const [{ key, value, headers }, setParts] = useState(() => initial(topic, record, like));
  const [partition, setPartition] = useState("");
  const [moment, setMoment] = useState("");
  const set = (changes) => setParts((old) => ({ ...old, ...changes }));
  const setHeader = (index, changes) => set({ headers: headers.map((each, at) => (at === index ? { ...each, ...changes } : each)) });
  const submit = async () => {
    const written = await change("POST", path`/api/topics/${target}/records`, {
      key: body(key),
      value: body(value),
      headers: headers.map((header) => ({ name: header.name, value: body(header) })),
      partition: partition === "" ? null : Number(partition),
      timestamp: moment === "" ? null : Number(moment),
    });
    toast(`Written to partition ${written.partition} of ${written.topic} at offset ${written.offset}.`);
    onDone();
  };
  return html`
    <${Dialog} title=${record ? "Edit and produce" : `Produce to ${topic}`} onClose=${onClose} wide>
      <${ChangeForm} action="Produce" onSubmit=${submit} onCancel=${onClose}>
        ${record && html`<${TextField} label="Topic" value=${target} onChange=${setTarget} required />`}
        ${record?.value.cut && html`<p class="notice warn">The value is too long to be edited here: only its beginning would be written.</p>`}
        <${Part} name="Key" part=${key} rows=${2} onChange=${(changes) => set({ key: { ...key, ...changes } })} subject=${`${target}-key`} />
        <${Part} name="Value" part=${value} rows=${8} onChange=${(changes) => set({ value: { ...value, ...changes } })} subject=${`${target}-value`} />
        ${headers.map(
          (header, index) => html`
            <fieldset key=${index} class="messages-header-field">
              <legend>Header ${index + 1}</legend>
              <${TextField} label="Name" value=${header.name} onChange=${(name) => setHeader(index, { name })} required />
              <${Part} name="Value of the header" part=${header} rows=${1} onChange=${(changes) => setHeader(index, changes)} />
              <button type="button" class="small" onClick=${() => set({ headers: headers.filter((_, at) => at !== index) })}>Remove header ${index + 1}</button>
            </fieldset>
          `,
        )}
        <div><button type="button" class="small" onClick=${() => set({ headers: [...headers, { name: "", ...empty() }] })}>Add a header</button></div>
        <div class="columns">
          <${NumberField} label="Partition" min="0" value=${partition} onChange=${setPartition} hint="Empty: by the key" />
          <${NumberField} label="Timestamp (ms)" min="0" value=${moment} onChange=${setMoment} hint="Empty: now" />
        </div>
      <//>
    <//>
  `;
}

function Part({ name, part, rows, subject, onChange }) {
  const formats = subject ? FORMATS : FORMATS.filter(([format]) => format !== "schema");
  const choose = (format) => onChange({ format, subject: format === "schema" ? part.subject || subject : part.subject });
  return html`
    <div class="messages-part">
      <${SelectField} label=${`${name} as`} value=${part.format} onChange=${choose} options=${formats} />
      ${part.format === "schema" &&
      html`<${TextField} label="Subject" value=${part.subject} onChange=${(text) => onChange({ subject: text, schema_id: null })} hint=${part.schema_id ? `schema ${part.schema_id}` : "its latest version"} required />`}
      ${part.format !== "null" && html`<${TextArea} label=${name} rows=${rows} value=${part.data} onChange=${(data) => onChange({ data })} />`}
      ${part.format === "null" && name === "Value" && html`<p class="hint">A tombstone: compaction deletes the key.</p>`}
    </div>
  `;
}
