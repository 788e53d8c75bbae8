// What stands in the place of something that is loading, empty, or cannot be shown.
import { html } from "../ui.js";

export const Loading = ({ what = "" }) => html`<p class="state loading" role="status">Loading${what && ` ${what}`}…</p>`;

export const Empty = ({ children }) => html`<p class="state">${children}</p>`;

/** A sentence about what went wrong; `problem` is an ApiError. */
export const Problem = ({ problem, retry }) => html`
  <div class="notice bad" role="alert">
    <p>${problem.message}</p>
    ${retry && html`<button type="button" class="small" onClick=${retry}>Try again</button>`}
  </div>
`;

/** A resource of useResource: its content, or what stands in its place. Old content stays beside a problem. */
export function Loaded({ resource, what, children }) {
  const { data, problem, isLoading, reload } = resource;
  if (data === null && problem) return html`<${Problem} problem=${problem} retry=${reload} />`;
  if (data === null) return isLoading ? html`<${Loading} what=${what} />` : null;
  return html`${problem && html`<${Problem} problem=${problem} retry=${reload} />`}${children(data)}`;
}
