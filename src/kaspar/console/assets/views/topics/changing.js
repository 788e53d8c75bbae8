// Dialogs that give a topic more partitions, and delete its records.
import { html, useState } from "../../js/ui.js";
import { change, path } from "../../js/api.js";
import { Dialog } from "../../js/components/dialog.js";
import { ChangeForm, NumberField, SelectField, TextField } from "../../js/components/form.js";
import { toast } from "../../js/components/toast.js";
import { count } from "../../js/format.js";

export function AddPartitions({ name, present, onClose }) {
  const [total, setTotal] = useState(String(present + 1));
  const add = async () => {
    await change("POST", path`/api/topics/${name}/partitions`, { total: Number(total) });
    toast(`The topic ${name} now has ${count(Number(total), "partition")}.`);
    onClose(true);
  };
  return html`
    <${Dialog} title=${`Add partitions to ${name}`} onClose=${() => onClose(false)}>
      <${ChangeForm} action="Add partitions" onSubmit=${add} onCancel=${() => onClose(false)} canSubmit=${Number(total) > present}>
        <p>It has ${count(present, "partition")}. Keys may then map to different partitions than before, and partitions cannot be removed.</p>
        <${NumberField} label="Total partitions" value=${total} onChange=${setTotal} min=${present + 1} required autofocus />
      <//>
    <//>
  `;
}

/** The records before an offset of one partition, or all records. What is deleted is typed by name first. */
export function DeleteRecords({ topic, onClose }) {
  const { name, partitions } = topic;
  const [which, setWhich] = useState("");
  const [before, setBefore] = useState("");
  const [typed, setTyped] = useState("");
  const chosen = partitions.find((row) => String(row.partition) === which);
  const remove = async () => {
    const offset = before === "" ? -1 : Number(before);
    await change("POST", path`/api/topics/${name}/truncate`, chosen ? { offsets: { [which]: offset } } : {});
    toast(`Records of ${name} were deleted.`);
    onClose(true);
  };
  const options = [["", "All partitions, all records"], ...partitions.map((row) => [String(row.partition), `Partition ${row.partition}`])];
  return html`
    <${Dialog} title=${`Delete records of ${name}`} onClose=${() => onClose(false)}>
      <${ChangeForm} action="Delete records" isDangerous=${true} onSubmit=${remove} onCancel=${() => onClose(false)} canSubmit=${typed === name}>
        <p>Records before an offset are deleted on all replicas. This cannot be undone.</p>
        <${SelectField} label="Of" value=${which} onChange=${setWhich} options=${options} />
        ${chosen && html`<${NumberField} label="Before the offset" value=${before} onChange=${setBefore} min=${chosen.start_offset ?? 0} max=${chosen.end_offset ?? undefined} placeholder="end of the log" />`}
        <${TextField} label=${`Type ${name} to confirm`} value=${typed} onChange=${setTyped} />
      <//>
    <//>
  `;
}
