// Tables: sorted, paged by the server or scrolled through with only the visible rows in the page, and used by keyboard:
// the arrows, Page Up, Page Down, Home and End move between rows, Enter follows a row's link.
import { classes, html, useEffect, useMemo, useRef, useState } from "../ui.js";
import { number } from "../format.js";
import { Empty } from "./states.js";

const ROW_PX = 37; // as in components.css
const VIRTUAL_FROM = 120;
const MARGIN = 12;

const compare = (left, right) => {
  if (left === right) return 0;
  if (left === null || left === undefined) return -1;
  if (right === null || right === undefined) return 1;
  return typeof left === "string" ? left.localeCompare(right, "en", { numeric: true }) : left - right;
};

/** Rows that are all here, sorted by the column that the person has chosen. */
function useSorted(rows, columns, initial) {
  const [sort, setSort] = useState(initial ?? null);
  const sorted = useMemo(() => {
    const column = sort && columns.find((each) => each.key === sort.key);
    if (!column) return rows;
    const valueOf = column.value ?? ((row) => row[column.key]);
    const direction = sort.descending ? -1 : 1;
    return [...rows].sort((left, right) => direction * compare(valueOf(left), valueOf(right)));
  }, [rows, sort, columns]);
  return [sorted, sort, setSort];
}

function Heading({ column, sort, onSort }) {
  const isSorted = sort?.key === column.key;
  const attributes = { scope: "col", class: classes(column.align === "right" && "right", column.hideOnPhone && "wide-only") };
  if (!column.sort) return html`<th ...${attributes}>${column.title}</th>`;
  const direction = isSorted ? (sort.descending ? "descending" : "ascending") : undefined;
  const next = () => onSort({ key: column.key, descending: isSorted ? !sort.descending : column.sort === "descending" });
  return html`
    <th ...${attributes} aria-sort=${direction}>
      <button type="button" class="sort" onClick=${next}>${column.title}<span class="arrow" aria-hidden="true">${isSorted ? (sort.descending ? "↓" : "↑") : ""}</span></button>
    </th>
  `;
}

function Row({ row, columns, index, href, isVirtual }) {
  return html`
    <tr data-row aria-rowindex=${isVirtual ? index + 2 : undefined}>
      ${columns.map((column, at) => {
        const shown = column.render ? column.render(row) : row[column.key];
        const content = at === 0 && href ? html`<a href=${href(row)}>${shown}</a>` : shown;
        return html`<td key=${column.key} class=${classes(column.align === "right" && "right", column.hideOnPhone && "wide-only", column.class)}>${content}</td>`;
      })}
    </tr>
  `;
}

/** Which rows of a long table are in the page, by where its box is scrolled to. */
function useWindow(box, count, isVirtual) {
  const [range, setRange] = useState({ from: 0, to: 60 });
  useEffect(() => {
    const element = box.current;
    if (!isVirtual || !element) return undefined;
    const measure = () => {
      const from = Math.max(0, Math.floor(element.scrollTop / ROW_PX) - MARGIN);
      const to = Math.min(count, Math.ceil((element.scrollTop + element.clientHeight) / ROW_PX) + MARGIN);
      setRange((old) => (old.from === from && old.to === to ? old : { from, to }));
    };
    measure();
    element.addEventListener("scroll", measure, { passive: true });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => {
      element.removeEventListener("scroll", measure);
      observer.disconnect();
    };
  }, [count, isVirtual]);
  return isVirtual ? { from: range.from, to: Math.min(count, Math.max(range.to, range.from + 1)) } : { from: 0, to: count };
}

/** The row that gets the focus: its link or button, or the row itself. */
function focusRow(row) {
  const target = row?.querySelector("a, button, input");
  (target ?? row)?.focus();
}

function moveFocus(event) {
  const row = event.target.closest("[data-row]");
  if (!row || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  const rows = [...row.parentElement.querySelectorAll("[data-row]")];
  const at = rows.indexOf(row);
  const target = {
    ArrowDown: at + 1,
    ArrowUp: at - 1,
    PageDown: Math.min(at + 10, rows.length - 1),
    PageUp: Math.max(at - 10, 0),
    Home: 0,
    End: rows.length - 1,
  }[event.key];
  if (target === undefined || !rows[target]) return;
  event.preventDefault();
  focusRow(rows[target]);
}

/** `columns`: {key, title, render?, value?, align?, sort?, hideOnPhone?, class?}; `sort` is true, or "descending" to
 * begin with the largest; `value` is what to sort by. `rowKey` and `href` are functions of a row. A table whose rows the
 * server sorts and pages has `page` ({offset, limit, total, onPage}) and `sorting` ({sort, onSort}). */
export function Table({ columns, rows, rowKey, href, label, empty = "Nothing to show.", page, sorting, initialSort }) {
  const box = useRef(null);
  const [sorted, ownSort, setOwnSort] = useSorted(rows, columns, initialSort);
  const shown = sorting ? rows : sorted;
  const isVirtual = shown.length > VIRTUAL_FROM;
  const { from, to } = useWindow(box, shown.length, isVirtual);
  const sort = sorting ? sorting.sort : ownSort;
  const onSort = sorting ? sorting.onSort : setOwnSort;
  if (rows.length === 0) return html`<${Empty}>${empty}<//>`;
  const gap = (height) => height > 0 && html`<tr aria-hidden="true" class="gap" style=${{ height: `${height}px` }}><td colspan=${columns.length}></td></tr>`;
  return html`
    <div class=${classes("table", isVirtual && "virtual")} ref=${box} tabindex="0" role="region" aria-label=${label}>
      <table aria-rowcount=${isVirtual ? shown.length + 1 : undefined}>
        <caption class="visually-hidden">${label}</caption>
        <thead><tr>${columns.map((column) => html`<${Heading} key=${column.key} ...${{ column, sort, onSort }} />`)}</tr></thead>
        <tbody onKeyDown=${moveFocus}>
          ${gap(from * ROW_PX)}
          ${shown.slice(from, to).map((row, at) => html`<${Row} key=${rowKey(row)} ...${{ row, columns, href, isVirtual, index: from + at }} />`)}
          ${gap((shown.length - to) * ROW_PX)}
        </tbody>
      </table>
    </div>
    ${page && html`<${Pager} ...${page} />`}
  `;
}

function Pager({ offset, limit, total, onPage }) {
  if (total <= limit && offset === 0) return html`<p class="pager hint">${number(total)} in total</p>`;
  const last = Math.max(0, Math.floor((total - 1) / limit) * limit);
  const to = (where, label, text, isOff) => html`<button type="button" class="small" aria-label=${label} disabled=${isOff} onClick=${() => onPage(where)}>${text}</button>`;
  return html`
    <nav class="pager" aria-label="Pages">
      ${to(0, "First page", "«", offset === 0)}${to(Math.max(0, offset - limit), "Previous page", "‹", offset === 0)}
      <span role="status">${number(offset + 1)}–${number(Math.min(offset + limit, total))} of ${number(total)}</span>
      ${to(offset + limit, "Next page", "›", offset + limit >= total)}${to(last, "Last page", "»", offset + limit >= total)}
    </nav>
  `;
}
