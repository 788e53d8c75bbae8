// Follows the end of a topic by server-sent events.
import { path, withQuery } from "../../js/api.js";
import { useEffect, useRef, useState } from "../../js/ui.js";

const KEPT = 200;
const RATE_EVENTS = 6; // over which rates are averaged
const RETRY_MS = 3_000;

const NOTHING = { rows: [], rate: 0, shown: 0, skipped: 0, arrived: 0, problem: null, isOpen: false };

const sum = (events, value) => events.reduce((total, each) => total + value(each), 0);

/** `asked` are the parameters of the stream, or null. While `isPaused`, rows stay as they are; `arrived` counts what came
 * since. */
export function useTail(topic, asked, isPaused) {
  const [state, setState] = useState(NOTHING);
  const paused = useRef(isPaused);
  paused.current = isPaused;
  const key = asked && JSON.stringify(asked);
  useEffect(() => {
    setState(NOTHING);
    if (!key) return undefined;
    const url = withQuery(path`/api/topics/${topic}/tail`, JSON.parse(key));
    let recent = [];
    let source = null;
    let retry = null;
    const arrived = (event) => {
      recent = [...recent.slice(1 - RATE_EVENTS), event];
      const seconds = sum(recent, (each) => each.seconds) || 1;
      setState((old) => ({
        rows: paused.current ? old.rows : [...[...event.records].reverse(), ...old.rows].slice(0, KEPT),
        arrived: paused.current ? old.arrived + event.matched : 0,
        rate: sum(recent, (each) => each.appended) / seconds,
        shown: sum(recent, (each) => each.records.length) / seconds,
        skipped: old.skipped + event.skipped + event.matched - event.records.length,
        problem: event.problem,
        isOpen: true,
      }));
    };
    const close = () => {
      clearTimeout(retry);
      source?.close();
      source = null;
    };
    const open = () => {
      if (document.visibilityState === "hidden") return; // browsers allow six connections to a host
      close();
      source = new EventSource(url);
      source.addEventListener("records", (event) => arrived(JSON.parse(event.data)));
      source.addEventListener("error", () => {
        setState((old) => ({ ...old, isOpen: false }));
        if (source?.readyState !== EventSource.CLOSED) return; // the browser tries again
        explain(url).then((problem) => setState((old) => ({ ...old, problem })));
        retry = setTimeout(open, RETRY_MS);
      });
    };
    const changed = () => (document.visibilityState === "hidden" ? close() : open());
    document.addEventListener("visibilitychange", changed);
    open();
    return () => {
      document.removeEventListener("visibilitychange", changed);
      close();
    };
  }, [topic, key]);
  return state;
}

/** Why a stream was refused: an EventSource does not say. */
async function explain(url) {
  const aborting = new AbortController();
  try {
    const response = await fetch(url, { signal: aborting.signal });
    if (response.ok) return null;
    return (await response.json()).message;
  } catch {
    return "The console does not respond. Retrying…";
  } finally {
    aborting.abort();
  }
}
