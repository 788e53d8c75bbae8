// Where the page is: the part of the address behind #. `#/topics/orders?tab=settings` is the view "topics" with the
// segments ["orders"].
import { Shared } from "./ui.js";
import { useShared } from "./shared.js";

function parse() {
  const [path, query = ""] = location.hash.replace(/^#/, "").split("?", 2);
  const segments = path.split("/").filter(Boolean).map(decode);
  return { view: segments[0] ?? "overview", segments: segments.slice(1), query: new URLSearchParams(query), path };
}

function decode(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment; // a percent sign that somebody has typed
  }
}

export const route = new Shared(parse());
window.addEventListener("hashchange", () => route.set(parse()));

/** link("topics", "orders") is "#/topics/orders"; an object at the end is the query. */
export function link(...parts) {
  const query = typeof parts.at(-1) === "object" ? parts.pop() : {};
  const set = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(set).toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

export const navigate = (target) => {
  location.hash = target;
};

/** Changes parameters of the query without a new entry in the history, so that a reload shows the same. */
export function setQuery(changes) {
  const { path, query } = parse();
  for (const [name, value] of Object.entries(changes)) {
    if (value === "" || value === null || value === undefined) query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  history.replaceState(null, "", `#${path || "/"}${text ? `?${text}` : ""}`);
  route.set(parse());
}

export const useRoute = () => useShared(route);
