// The records that were found, one line each. A line opens to the whole record.
import { classes, Fragment, html, useState } from "../../js/ui.js";
import { number, time } from "../../js/format.js";
import { Text } from "../../js/components/values.js";
import { described, Short } from "./contents.js";
import { Record, State } from "./record.js";

const keyOf = (row) => `${row.partition}-${row.offset}`;

/** The arrows go from line to line. */
function moveFocus(event) {
  const row = event.target.closest("[data-row]");
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  if (!row || !(event.key in steps) || event.target.tagName !== "BUTTON") return;
  const rows = [...row.parentElement.querySelectorAll("[data-row]")];
  const target = rows[rows.indexOf(row) + steps[event.key]];
  if (!target) return;
  event.preventDefault();
  target.querySelector("button").focus();
}

export function Results({ topic, rows, formats, onReplay, onEdit }) {
  const [open, setOpen] = useState(() => new Set());
  const toggle = (row) => {
    const next = new Set(open);
    if (!next.delete(keyOf(row))) next.add(keyOf(row));
    setOpen(next);
  };
  const hasLetters = rows.some((row) => row.dead_letter);
  return html`
    <div class="table messages-results" tabindex="0" role="region" aria-label="Records">
      <table>
        <caption class="visually-hidden">Records of ${topic}</caption>
        <thead>
          <tr>
            <th scope="col">Offset</th>
            <th scope="col" class="right wide-only">Partition</th>
            <th scope="col" class="wide-only">Time</th>
            <th scope="col">Key</th>
            <th scope="col">Value</th>
            ${hasLetters && html`<th scope="col" class="wide-only">Reason</th>`}
          </tr>
        </thead>
        <tbody onKeyDown=${moveFocus}>
          ${rows.map((row) => {
            const isOpen = open.has(keyOf(row));
            return html`
              <${Fragment} key=${keyOf(row)}>
                <${Line} ...${{ row, isOpen, hasLetters }} onToggle=${() => toggle(row)} />
                ${isOpen &&
                html`<tr class="messages-opened"><td colspan=${hasLetters ? 6 : 5}><${Record} ...${{ topic, row, formats, onReplay, onEdit }} /></td></tr>`}
              <//>
            `;
          })}
        </tbody>
      </table>
    </div>
  `;
}

function Line({ row, isOpen, hasLetters, onToggle }) {
  return html`
    <tr data-row class=${classes(row.state !== "committed" && `messages-${row.state}`)}>
      <td class="nowrap">
        <button type="button" class="link messages-toggle" aria-expanded=${isOpen ? "true" : "false"}
          aria-label=${`Offset ${row.offset} of partition ${row.partition}`} onClick=${onToggle}>
          <span aria-hidden="true">${isOpen ? "▾" : "▸"}</span> ${number(row.offset)}
        </button>
      </td>
      <td class="right wide-only">${row.partition}</td>
      <td class="nowrap wide-only" title=${row.timestamp_type}>${time(row.timestamp)}</td>
      <td class="messages-key" title=${described(row.key)}><${Short} content=${row.key} /></td>
      <td class="messages-value" title=${described(row.value)}>
        ${row.state !== "committed" && html`<${State} record=${row} /> `}
        ${row.state === "damaged" ? row.note : html`<${Short} content=${row.value} />`}
      </td>
      ${hasLetters && html`<td class="messages-reason wide-only">${row.dead_letter && html`<${Text}>${row.dead_letter.reason}<//>`}</td>`}
    </tr>
  `;
}
