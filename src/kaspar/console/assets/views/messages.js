// Messages: the records of a topic at any position, filtered, or as they arrive; produce and replay.
import { html, useState } from "../js/ui.js";
import { useResource, withQuery } from "../js/api.js";
import { bytes, compact, count, number } from "../js/format.js";
import { link, setQuery } from "../js/router.js";
import { Page } from "../js/page.js";
import { Search } from "../js/components/form.js";
import { Empty, Loaded } from "../js/components/states.js";
import { Table } from "../js/components/table.js";
import { useTail } from "./messages/following.js";
import { Produce } from "./messages/produce.js";
import { ReplayLetters, ReplayOne } from "./messages/replay.js";
import { Results } from "./messages/results.js";
import { useSearch } from "./messages/searching.js";
import { FilterError, FilterHelp, Toolbar } from "./messages/toolbar.js";

export default function Messages({ segments, query }) {
  const topic = segments[0] ?? query.get("topic");
  return topic ? html`<${Topic} key=${topic} topic=${topic} query=${query} />` : html`<${ChooseTopic} query=${query} />`;
}

function ChooseTopic({ query }) {
  const search = query.get("search") ?? "";
  const resource = useResource(withQuery("/api/topics", { search, limit: 50, internal: search.startsWith("__") }));
  const columns = [
    { key: "name", title: "Topic" },
    { key: "partitions", title: "Partitions", align: "right", render: (row) => number(row.partitions) },
  ];
  return html`
    <${Page} title="Messages" intro="Choose a topic to see its records.">
      <div class="toolbar"><${Search} label="Find a topic" value=${search} onChange=${(value) => setQuery({ search: value })} /></div>
      <${Loaded} resource=${resource} what="topics">
        ${(data) => html`<${Table} label="Topics" columns=${columns} rows=${data.rows} rowKey=${(row) => row.name} href=${(row) => link("messages", row.name)} empty="No matching topic." />`}
      <//>
    <//>
  `;
}

/** The parameters of both, a search and a stream. */
const common = (query) => ({
  partitions: query.get("partitions") ?? "",
  filter: query.get("filter") ?? "",
  isolation: query.get("isolation") === "read_committed" ? "read_committed" : "",
  key: query.get("key") ?? "",
  value: query.get("value") ?? "",
});

function asked(query) {
  const at = query.get("at") ?? "newest";
  return {
    ...common(query),
    at,
    direction: query.get("direction") ?? (at === "newest" ? "backward" : "forward"),
    markers: query.get("isolation") === "markers",
  };
}

function Topic({ topic, query }) {
  const isLive = query.get("live") === "1";
  const [isPaused, setPaused] = useState(false);
  const [dialog, setDialog] = useState(null);
  const search = useSearch(topic, isLive ? null : asked(query));
  const tail = useTail(topic, isLive ? common(query) : null, isPaused);
  const filter = query.get("filter") ?? "";
  const isNewestFirst = query.get("order") !== "asc";
  const isReversed = !isLive && isNewestFirst !== (asked(query).direction === "backward");
  const found = isLive ? tail.rows : search.rows;
  const rows = isReversed ? [...found].reverse() : found;
  const close = () => setDialog(null);
  const done = () => {
    close();
    search.reload();
  };
  const toggleLive = () => {
    setPaused(false);
    setQuery({ live: isLive ? "" : "1", at: "", direction: "", order: "" });
  };
  const actions = html`
    <button type="button" aria-pressed=${isLive ? "true" : "false"} class=${isLive && "primary"} onClick=${toggleLive}>${isLive ? "Stop following" : "Follow live"}</button>
    <button type="button" onClick=${() => setDialog({ kind: "produce" })}>Produce…</button>
  `;
  return html`
    <${Page} title=${`Messages of ${topic}`} crumbs=${[["Topics", link("topics")], [topic, link("topics", topic)]]} actions=${actions}>
      <${Toolbar} query=${query} isLive=${isLive} partitionCount=${search.partitionCount} onRun=${search.reload} />
      <${FilterHelp} />
      ${isLive
        ? html`<${TailStatus} tail=${tail} isPaused=${isPaused} onPause=${() => setPaused(!isPaused)} />`
        : html`<${SearchStatus} search=${search} filter=${filter} />`}
      ${rows.some((row) => row.dead_letter) &&
      html`<p class="notice warn">This topic has dead letters. <button type="button" class="small" onClick=${() => setDialog({ kind: "letters" })}>Replay those that match…</button></p>`}
      ${rows.length > 0 &&
      html`<${Results} topic=${topic} rows=${rows} formats=${{ key: query.get("key") ?? "", value: query.get("value") ?? "" }}
        onReplay=${(record) => setDialog({ kind: "replay", record })} onEdit=${(record) => setDialog({ kind: "produce", record })} />`}
      ${!isLive && html`<${Paging} search=${search} isNewestFirst=${isNewestFirst} isFiltered=${Boolean(filter)} />`}
      ${dialog?.kind === "produce" && html`<${Produce} topic=${topic} record=${dialog.record} like=${rows.find((row) => row.value.kind !== "null")} onClose=${close} onDone=${done} />`}
      ${dialog?.kind === "replay" && html`<${ReplayOne} topic=${topic} record=${dialog.record} onClose=${close} onDone=${done} />`}
      ${dialog?.kind === "letters" && html`<${ReplayLetters} topic=${topic} filter=${filter} onClose=${close} onDone=${done} />`}
    <//>
  `;
}

function SearchStatus({ search, filter }) {
  const { rows, scanned, scannedBytes, isRunning, problem, undecided, problems, stopped } = search;
  if (problem?.status === 400 && filter) return html`<${FilterError} message=${problem.message} filter=${filter} />`;
  if (problem) return html`<div class="notice bad" role="alert"><p>${problem.message}</p><button type="button" class="small" onClick=${search.reload}>Try again</button></div>`;
  return html`
    <div class="messages-status" role="status">
      <span>
        ${count(rows.length, "record")}${filter && ` found, ${number(scanned)} scanned (${bytes(scannedBytes)})`}
        ${isRunning ? " – searching…" : stopped === "budget" ? " – stopped" : ""}
      </span>
      ${isRunning && filter && html`<button type="button" class="small" onClick=${search.stop}>Stop</button>`}
    </div>
    ${undecided > 0 && html`<p class="notice warn">${count(undecided, "record")} took too many steps to be filtered, and ${undecided === 1 ? "is" : "are"} left out.</p>`}
    ${problems.map(({ partition, message }) => html`<p key=${partition} class="notice warn">Partition ${partition} is not shown: ${message}.</p>`)}
    ${!isRunning && stopped && rows.length === 0 && html`<${Empty}>${filter ? "No record matches." : "There are no records here."}<//>`}
  `;
}

function TailStatus({ tail, isPaused, onPause }) {
  const rates = tail.rate > tail.shown * 1.2 + 1 ? `showing ${compact(tail.shown)}/s of ${compact(tail.rate)}/s` : `${compact(tail.rate)} records/s`;
  return html`
    <div class="messages-status" role="status">
      <span>${tail.isOpen ? (isPaused ? `Paused; ${count(tail.arrived, "new record")}` : `Live, ${rates}`) : "Connecting…"}</span>
      <button type="button" class="small" aria-pressed=${isPaused ? "true" : "false"} onClick=${onPause}>${isPaused ? "Resume" : "Pause"}</button>
      ${tail.skipped > 0 && html`<span class="hint">${number(tail.skipped)} left out</span>`}
    </div>
    ${tail.problem && html`<p class="notice bad" role="alert">${tail.problem}</p>`}
    ${tail.isOpen && tail.rows.length === 0 && !tail.problem && html`<${Empty}>Records appear here as they are written.<//>`}
  `;
}

/** Older and newer, wherever the page began. A search that was stopped goes on there, too. */
function Paging({ search, isNewestFirst, isFiltered }) {
  if (!search.low) return null;
  const older = () => setQuery({ at: `cursor:${search.low}`, direction: "backward" });
  const newer = () => setQuery({ at: `cursor:${search.high}`, direction: "forward" });
  const offsets = (cursor) => new Map(cursor.split(",").map((each) => each.split(":").map(Number)));
  const low = offsets(search.low);
  const hasOlder = search.partitions.some(({ partition, start }) => (low.get(partition) ?? 0) > start);
  const buttons = [
    html`<button key="newer" type="button" onClick=${newer} disabled=${search.isRunning}>${isNewestFirst ? "‹ Newer" : "Newer ›"}</button>`,
    html`<button key="older" type="button" onClick=${older} disabled=${search.isRunning || !hasOlder}>${isNewestFirst ? "Older ›" : "‹ Older"}</button>`,
  ];
  return html`<nav class="pager" aria-label=${isFiltered ? "Continue the search" : "Pages"}>${isNewestFirst ? buttons : buttons.reverse()}</nav>`;
}
