// The state of a pipeline, and the changes that a person can make to it.
import { html } from "../../js/ui.js";
import { path } from "../../js/api.js";
import { Status } from "../../js/components/values.js";
import { askAndChange } from "../common/changing.js";

const KINDS = { running: "good", starting: "warn", restarting: "warn", failed: "bad", interrupted: "warn" };

export const State = ({ state }) => html`<${Status} kind=${KINDS[state] ?? "neutral"}>${state}<//>`;

/** `onChange` is called when the pipeline has been asked to change: how it goes on is seen in its state. */
export function Actions({ row, onChange, small }) {
  const ask = async (verb, question, done) => {
    if (await askAndChange(question, "POST", path`/api/pipelines/${row.name}/${verb}`, { done })) onChange();
  };
  const restart = () =>
    ask("restart", { title: `Restart ${row.name}?`, text: "It finishes its micro-batch and stops; then its program is run again.", action: "Restart" }, `${row.name} is restarting.`);
  const stop = () =>
    ask("stop", { title: `Stop ${row.name}?`, text: "It finishes its micro-batch and stays stopped until it is restarted.", action: "Stop", isDangerous: true }, `${row.name} is stopping.`);
  const size = small ? "small" : "";
  const verb = row.state === "stopped" ? "Start…" : "Restart…";
  return html`
    <button type="button" class=${size} aria-label=${`${verb} ${row.name}`} onClick=${restart}>${verb}</button>
    ${row.wanted !== "stopped" && html`<button type="button" class=${`${size} danger`} aria-label=${`Stop… ${row.name}`} onClick=${stop}>Stop…</button>`}
  `;
}
