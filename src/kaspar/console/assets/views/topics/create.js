// The form that creates a topic.
import { html, useState } from "../../js/ui.js";
import { change } from "../../js/api.js";
import { Dialog } from "../../js/components/dialog.js";
import { ChangeForm, NumberField, SelectField, TextArea, TextField } from "../../js/components/form.js";
import { toast } from "../../js/components/toast.js";
import { link, navigate } from "../../js/router.js";

const POLICIES = [["", "the brokers' default"], "delete", "compact", ["compact,delete", "compact and delete"]];

/** "a=1" in lines, as an object. Throws a sentence. */
function settingsOf(text) {
  const settings = {};
  for (const line of text.split("\n").map((each) => each.trim()).filter(Boolean)) {
    const [name, ...value] = line.split("=");
    if (value.length === 0 || !name.trim()) throw new Error(`"${line}" is not of the form name=value.`);
    settings[name.trim()] = value.join("=").trim();
  }
  return settings;
}

export function CreateTopic({ onClose }) {
  const [name, setName] = useState("");
  const [partitions, setPartitions] = useState("");
  const [replicas, setReplicas] = useState("");
  const [policy, setPolicy] = useState("");
  const [retention, setRetention] = useState("");
  const [others, setOthers] = useState("");
  const create = async () => {
    const configs = settingsOf(others);
    if (policy) configs["cleanup.policy"] = policy;
    if (retention !== "") configs["retention.ms"] = String(Math.round(Number(retention) * 3_600_000));
    await change("POST", "/api/topics", {
      name: name.trim(),
      partitions: partitions === "" ? -1 : Number(partitions),
      replication_factor: replicas === "" ? -1 : Number(replicas),
      configs,
    });
    toast(`The topic ${name.trim()} was created.`);
    onClose();
    navigate(link("topics", name.trim()));
  };
  return html`
    <${Dialog} title="Create topic" onClose=${onClose}>
      <${ChangeForm} action="Create topic" onSubmit=${create} onCancel=${onClose} canSubmit=${name.trim() !== ""}>
        <${TextField} label="Name" value=${name} onChange=${setName} required maxlength="249" hint="Letters, digits, dots, underscores and hyphens" autofocus />
        <div class="columns">
          <${NumberField} label="Partitions" value=${partitions} onChange=${setPartitions} min="1" placeholder="default" />
          <${NumberField} label="Replication factor" value=${replicas} onChange=${setReplicas} min="1" placeholder="default" />
        </div>
        <div class="columns">
          <${SelectField} label="Clean-up" value=${policy} onChange=${setPolicy} options=${POLICIES} />
          <${NumberField} label="Retention, hours" value=${retention} onChange=${setRetention} min="0" step="any" placeholder="default" />
        </div>
        <${TextArea} label="Other settings" rows=${3} value=${others} onChange=${setOthers} hint="One name=value on each line" />
      <//>
    <//>
  `;
}
