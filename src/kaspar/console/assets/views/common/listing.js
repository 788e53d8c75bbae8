// A list that the server searches, sorts and pages. What is chosen is in the address, so that links and reloads keep it.
import { html, useRef } from "../../js/ui.js";
import { useResource, withQuery } from "../../js/api.js";
import { Search } from "../../js/components/form.js";
import { Loaded } from "../../js/components/states.js";
import { Table } from "../../js/components/table.js";
import { setQuery, useRoute } from "../../js/router.js";

const LIMIT = 50;

/** `filters` are names of parameters beside `search`; `sort` is {key, descending}. */
export function useListing(base, { filters = [], sort = null, every = 10_000 } = {}) {
  const { query } = useRoute();
  const chosen = Object.fromEntries(["search", ...filters].map((name) => [name, query.get(name) ?? ""]));
  const offset = Number(query.get("offset")) || 0;
  const order = query.has("sort") ? { key: query.get("sort"), descending: query.get("order") === "down" } : sort;
  const sorted = order ? { sort: order.key, descending: order.descending } : {};
  const resource = useResource(withQuery(base, { ...chosen, ...sorted, offset, limit: LIMIT }), { every });
  const last = useRef(null); // stays while the next page is read
  if (resource.data) last.current = resource.data;
  return {
    chosen,
    choose: (changes) => setQuery({ ...changes, offset: "" }),
    resource: { ...resource, data: resource.data ?? (resource.problem ? null : last.current) },
    sorting: order && { sort: order, onSort: ({ key, descending }) => setQuery({ sort: key, order: descending ? "down" : "up", offset: "" }) },
    pageOf: (total) => ({ offset, limit: LIMIT, total, onPage: (where) => setQuery({ offset: where || "" }) }),
  };
}

/** The search field, other filters, and the table. `pageIn` takes the page out of what the server sends. */
export function Listing({ listing, what, searchLabel, filters, columns, rowKey, href, label, empty, pageIn = (data) => data }) {
  const { chosen, choose, resource, sorting, pageOf } = listing;
  const isFiltered = Object.values(chosen).some(Boolean);
  return html`
    <div class="toolbar">
      ${searchLabel && html`<${Search} label=${searchLabel} value=${chosen.search} onChange=${(search) => choose({ search })} />`}
      ${filters}
    </div>
    <${Loaded} resource=${resource} what=${what}>
      ${(data) => {
        const page = pageIn(data);
        return html`<${Table} ...${{ columns, rowKey, href, label, sorting }} rows=${page.rows} page=${pageOf(page.matching)}
          empty=${isFiltered ? "Nothing matches." : empty} />`;
      }}
    <//>
  `;
}

/** A choice among values, with how often each occurs: `counts` is {Stable: 3, Empty: 1}. */
export const CountedFilter = ({ label, counts = {}, value, onChange }) => html`
  <select aria-label=${label} value=${value} onChange=${(event) => onChange(event.target.value)}>
    <option value="" selected=${value === ""}>${label}: all</option>
    ${[...new Set([...Object.keys(counts), ...(value ? [value] : [])])]
      .sort()
      .map((name) => html`<option key=${name} value=${name} selected=${name === value}>${name} (${counts[name] ?? 0})</option>`)}
  </select>
`;
