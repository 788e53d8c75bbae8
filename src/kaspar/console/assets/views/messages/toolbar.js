// What is asked: where to begin, which partitions, which filter, and how bytes are read. All of it is in the address.
import { html, useEffect, useState } from "../../js/ui.js";
import { setQuery } from "../../js/router.js";
import { NumberField, SelectField, TextField } from "../../js/components/form.js";

const FORMATS = [["auto", "detect"], ["schema", "by schema"], "json", "text", ["integer", "integer"], ["hex", "hex"]];
const POSITIONS = [["newest", "Newest"], ["oldest", "Oldest"], ["offset", "From offset"], ["time", "From time"]];

const two = (value) => String(value).padStart(2, "0");

/** Milliseconds as the value of a datetime-local field, in local time. */
const toLocal = (ms) => {
  const at = new Date(ms);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}T${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
};

/** What the address says of the position: {kind, value}. */
function positionOf(query) {
  const [kind, ...rest] = (query.get("at") ?? "newest").split(":");
  return { kind: kind === "cursor" ? (query.get("order") === "asc" ? "oldest" : "newest") : kind, value: rest.join(":") };
}

export function Toolbar({ query, isLive, partitionCount, onRun }) {
  const position = positionOf(query);
  const [offset, setOffset] = useState(position.kind === "offset" ? position.value : "0");
  const [moment, setMoment] = useState(toLocal(position.kind === "time" ? Number(position.value) : Date.now() - 3_600_000));
  const [filter, setFilter] = useState(query.get("filter") ?? "");
  useEffect(() => setFilter(query.get("filter") ?? ""), [query.get("filter")]);
  const go = (at) => setQuery({ at: at === "newest" ? "" : at, direction: "", order: at === "newest" ? "" : "asc" });
  const choose = (kind) => {
    if (kind === "offset") go(`offset:${offset || 0}`);
    else if (kind === "time") go(`time:${new Date(moment).getTime()}`);
    else go(kind);
  };
  const submitted = (event) => {
    event.preventDefault();
    if (filter.trim() === (query.get("filter") ?? "")) onRun();
    else setQuery({ filter: filter.trim() });
  };
  const count = Math.max(partitionCount, Number(query.get("partitions") || -1) + 1); // while a topic is followed, it is not known
  const partitions = [["", "all"], ...Array.from({ length: count }, (_, number) => [String(number), String(number)])];
  return html`
    <form class="messages-filter" role="search" onSubmit=${submitted}>
      <${TextField} label="Filter" value=${filter} onChange=${setFilter} data-search maxlength="2000"
        placeholder='value.amount > 100 and key startswith "eu-", or "text to search for"  /' />
      <button class="primary">Search</button>
    </form>
    <div class="messages-options">
      ${!isLive &&
      html`
        <${SelectField} label="Position" value=${position.kind} onChange=${choose} options=${POSITIONS} />
        ${position.kind === "offset" && html`<${NumberField} label="Offset" value=${offset} min="0" onChange=${setOffset} onBlur=${() => choose("offset")} onKeyDown=${onEnter(() => choose("offset"))} />`}
        ${position.kind === "time" &&
        html`<${TextField} label="Time" type="datetime-local" step="1" value=${moment} onChange=${setMoment} onBlur=${() => moment && choose("time")} onKeyDown=${onEnter(() => moment && choose("time"))} />`}
      `}
      <${SelectField} label="Partition" value=${query.get("partitions") ?? ""} onChange=${(value) => setQuery({ partitions: value, ...reset(query) })} options=${partitions} />
      <${SelectField} label="Transactions" value=${query.get("isolation") ?? ""} onChange=${(value) => setQuery({ isolation: value, ...reset(query) })}
        options=${[["", "all records"], ["markers", "all, with markers"], ["read_committed", "committed only"]]} />
      <${SelectField} label="Keys" value=${query.get("key") ?? "auto"} onChange=${(value) => setQuery({ key: value === "auto" ? "" : value })} options=${FORMATS} />
      <${SelectField} label="Values" value=${query.get("value") ?? "auto"} onChange=${(value) => setQuery({ value: value === "auto" ? "" : value })} options=${FORMATS} />
    </div>
  `;
}

const onEnter = (action) => (event) => event.key === "Enter" && action();

/** A cursor belongs to the partitions that it was made for. */
const reset = (query) => ((query.get("at") ?? "").startsWith("cursor:") ? { at: "", direction: "", order: "" } : {});

/** An error in the filter, with a mark below the column that it names. */
export function FilterError({ message, filter }) {
  const found = /^Column (\d+): (.*)$/s.exec(message);
  if (!found) return html`<p class="notice bad" role="alert">${message}</p>`;
  const column = Number(found[1]);
  return html`
    <div class="notice bad" role="alert">
      <pre class="messages-mark" aria-hidden="true">${filter}${"\n"}${" ".repeat(column - 1)}^</pre>
      <p>${found[2]} <span class="hint">Column ${column}</span></p>
    </div>
  `;
}

const EXAMPLES = [
  ['"error"', "the text, in key, value or headers"],
  ['key == "eu-17"', "this key"],
  ["value.amount > 100 and not value.paid", "fields of JSON, Avro or Protobuf"],
  ['$.items[*].sku == "a-1"', "one of the items has it"],
  ['key in ["a", "b"]', "one of these"],
  ['value.name matches "^J.*n$"', "an RE2 pattern"],
  ['headers["trace-id"] contains "77"', "a header"],
  ["timestamp > now - 15m", "the last quarter of an hour"],
  ["len(value.items) > 3 and value is not null", "by length; skips tombstones"],
];

export const FilterHelp = () => html`
  <details class="messages-help">
    <summary>Examples of filters</summary>
    <dl>${EXAMPLES.map(([text, meaning]) => html`<div key=${text}><dt><code>${text}</code></dt><dd>${meaning}</dd></div>`)}</dl>
  </details>
`;
