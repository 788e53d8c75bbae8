// The settings of a topic, a broker or its loggers: their values, where those come from, and what they mean.
import { html, useMemo, useState } from "../js/ui.js";
import { change, useResource } from "../js/api.js";
import { confirm, Dialog } from "../js/components/dialog.js";
import { ChangeForm, Checkbox, Search, SelectField, TextField } from "../js/components/form.js";
import { Loaded } from "../js/components/states.js";
import { Table } from "../js/components/table.js";
import { toast } from "../js/components/toast.js";
import { Status, Text } from "../js/components/values.js";

const SOURCES = {
  DYNAMIC_TOPIC_CONFIG: "this topic",
  DYNAMIC_BROKER_CONFIG: "this broker",
  DYNAMIC_DEFAULT_BROKER_CONFIG: "all brokers",
  STATIC_BROKER_CONFIG: "the broker's file",
  DEFAULT_CONFIG: "default",
  DYNAMIC_BROKER_LOGGER_CONFIG: "this logger",
  DYNAMIC_GROUP_CONFIG: "this group",
  DYNAMIC_CLIENT_METRICS_CONFIG: "this subscription",
};
const LEVELS = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"];

const sourceOf = (name) => SOURCES[name] ?? name;

export const shownValue = (value, isSensitive) => {
  if (isSensitive) return html`<span class="hint">hidden</span>`;
  if (value === null) return html`<span class="hint">none</span>`;
  return value === "" ? html`<span class="hint">empty</span>` : html`<${Text}>${value}<//>`;
};

const columns = (onEdit) => [
  {
    key: "name",
    title: "Name",
    sort: true,
    render: (row) => html`<button type="button" class="link configs-name" onClick=${() => onEdit(row)}>${row.name}</button>`,
  },
  { key: "value", title: "Value", class: "configs-value", render: (row) => shownValue(row.value, row.is_sensitive) },
  {
    key: "source",
    title: "From",
    sort: true,
    hideOnPhone: true,
    render: (row) => html`<${Status} kind=${row.is_own ? "good" : "neutral"}>${sourceOf(row.source)}<//>`,
  },
];

/** `url` is the resource of the API; `what` is whose settings they are, in a sentence. */
export function Configs({ url, what, isLogger = false }) {
  const resource = useResource(url);
  const [search, setSearch] = useState("");
  const [onlyOwn, setOnlyOwn] = useState(false);
  const [edited, setEdited] = useState(null);
  const shownColumns = useMemo(() => columns(setEdited), []);
  const rows = useMemo(() => {
    const wanted = search.trim().toLowerCase();
    const matches = (row) => row.name.includes(wanted) || (row.documentation ?? "").toLowerCase().includes(wanted);
    return (resource.data ?? []).filter((row) => matches(row) && (!onlyOwn || row.source !== "DEFAULT_CONFIG"));
  }, [resource.data, search, onlyOwn]);
  const closed = (hasChanged) => {
    setEdited(null);
    if (hasChanged) resource.reload();
  };
  return html`
    <div class="toolbar">
      <${Search} label=${isLogger ? "Search loggers" : "Search settings"} value=${search} onChange=${setSearch} />
      ${!isLogger && html`<${Checkbox} label="Non-default only" value=${onlyOwn} onChange=${setOnlyOwn} />`}
    </div>
    <${Loaded} resource=${resource} what="settings">
      ${() => html`<${Table} label=${`Settings of ${what}`} columns=${shownColumns} rows=${rows} rowKey=${(row) => row.name} empty="No setting matches." />`}
    <//>
    ${edited && html`<${Setting} key=${edited.name} ...${{ setting: edited, url, what, isLogger, onClose: closed }} />`}
  `;
}

/** One setting: what it means, its values by source, and a form if it can be changed. */
function Setting({ setting, url, what, isLogger, onClose }) {
  const [value, setValue] = useState(setting.is_sensitive ? "" : (setting.value ?? ""));
  const save = async () => {
    await change("PUT", url, { set: { [setting.name]: value } });
    toast(`${setting.name} of ${what} was changed.`);
    onClose(true);
  };
  const reset = async () => {
    const next = setting.others[0];
    const details = next ? [`Then ${next.value ?? "no value"} applies, from ${sourceOf(next.source)}.`] : [];
    if (!(await confirm({ title: `Reset ${setting.name} of ${what}?`, details, action: "Reset" }))) return;
    try {
      await change("PUT", url, { reset: [setting.name] });
      toast(`${setting.name} of ${what} was reset.`);
      onClose(true);
    } catch (problem) {
      toast(problem.message, "bad");
    }
  };
  const field = isLogger
    ? html`<${SelectField} label="Level" value=${value} onChange=${setValue} options=${LEVELS} />`
    : html`<${TextField} label="Value" value=${value} onChange=${setValue} hint=${setting.is_sensitive ? "The current value is not shown." : undefined} />`;
  return html`
    <${Dialog} title=${setting.name} onClose=${() => onClose(false)}>
      ${setting.documentation && html`<p class="configs-documentation">${setting.documentation}</p>`}
      <dl class="configs-sources">
        <div><dt>${sourceOf(setting.source)}</dt><dd>${shownValue(setting.value, setting.is_sensitive)} <span class="hint">applies</span></dd></div>
        ${setting.others.map((other) => html`<div key=${other.source + other.name}><dt>${sourceOf(other.source)}</dt><dd>${shownValue(other.value, setting.is_sensitive)}${other.name !== setting.name && html` <span class="hint">${other.name}</span>`}</dd></div>`)}
      </dl>
      ${setting.is_read_only
        ? html`<p class="hint">It can be changed only in the broker's file, and applies after a restart.</p>`
        : html`
            <${ChangeForm} action=${`Change ${what}`} onSubmit=${save} onCancel=${() => onClose(false)} canSubmit=${setting.is_sensitive ? value !== "" : value !== (setting.value ?? "")}>
              ${field}
            <//>
            ${setting.is_own && !isLogger && html`<button type="button" class="small configs-reset" onClick=${reset}>Reset to ${setting.others[0] ? sourceOf(setting.others[0].source) : "default"}</button>`}
          `}
    <//>
  `;
}
