// Calls to the console's API. What goes wrong is an ApiError, whose message is a sentence for the person at the page.
import { useCallback, useEffect, useState } from "./ui.js";
import { connection } from "./live.js";
import { useShared } from "./shared.js";

export class ApiError extends Error {
  constructor(message, code, status) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

const LOST = "The console does not respond. Is it running?";

async function request(method, path, { body, signal } = {}) {
  const headers = {};
  if (method !== "GET") headers["X-Kaspar-Console"] = "1";
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw new ApiError(LOST, "unreachable", 0);
  }
  if (response.status === 204) return null;
  const text = await response.text();
  let content = null;
  try {
    content = JSON.parse(text);
  } catch {
    // the response of a proxy in between
  }
  if (response.ok) return content;
  const sentence = content?.message ?? `The console responded with the status ${response.status}.`;
  throw new ApiError(sentence, content?.code ?? "", response.status);
}

/** path`/api/topics/${name}` quotes what is put in. */
export const path = (parts, ...values) =>
  parts.reduce((whole, part, index) => whole + encodeURIComponent(values[index - 1]) + part);

/** "/api/topics?search=a": parameters without a value are left out. */
export function withQuery(base, parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== null && value !== "" && value !== false) query.set(name, value);
  }
  const text = query.toString();
  return text ? `${base}?${text}` : base;
}

export const get = (url, options) => request("GET", url, options);
export const change = (method, url, body) => request(method, url, { body });

/** What the API has at this path: {data, problem, isLoading, reload}. Without a path nothing is asked. While it is read
 * again, `data` is what there was. `every` are milliseconds after which that happens, while the page can be seen. */
export function useResource(url, { every = 0 } = {}) {
  const [state, setState] = useState({ url, data: null, problem: null, isLoading: Boolean(url) });
  const [round, setRound] = useState(0);
  const isConnected = useShared(connection) !== "lost";
  const reload = useCallback(() => setRound((value) => value + 1), []);
  useEffect(() => {
    if (!url) return undefined;
    const aborting = new AbortController();
    setState((old) => (old.url === url ? { ...old, isLoading: true } : { url, data: null, problem: null, isLoading: true }));
    get(url, { signal: aborting.signal }).then(
      (data) => setState({ url, data, problem: null, isLoading: false }),
      (problem) => {
        if (problem.name === "AbortError") return;
        setState((old) => ({ url, data: old.url === url ? old.data : null, problem, isLoading: false }));
      },
    );
    return () => aborting.abort();
  }, [url, round, isConnected]);
  useEffect(() => {
    if (!every) return undefined;
    const timer = setInterval(() => document.visibilityState === "visible" && reload(), every);
    return () => clearInterval(timer);
  }, [every, reload]);
  const current = state.url === url ? state : { data: null, problem: null, isLoading: Boolean(url) };
  return { data: current.data, problem: current.problem, isLoading: current.isLoading, reload };
}
