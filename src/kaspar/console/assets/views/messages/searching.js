// A search over the records of a topic. The server reads for a couple of seconds at a time; the page goes on where that
// ended until it has enough, nothing is left, or the person stops it.
import { get, path, withQuery } from "../../js/api.js";
import { useCallback, useEffect, useRef, useState } from "../../js/ui.js";

export const PAGE = 50;

const NOTHING = { rows: [], scanned: 0, scannedBytes: 0, undecided: 0, stopped: null, low: "", high: "", partitionCount: 0, partitions: [], problems: [] };

const added = (found, response) => ({
  rows: [...found.rows, ...response.records],
  scanned: found.scanned + response.scanned,
  scannedBytes: found.scannedBytes + response.scanned_bytes,
  undecided: found.undecided + response.undecided,
  stopped: response.stopped,
  partitionCount: response.partition_count,
  partitions: response.partitions,
  problems: response.problems,
});

/** `asked` are the parameters of the first request, or null. Returns what was found so far with isRunning, problem, stop
 * and reload. */
export function useSearch(topic, asked) {
  const [state, setState] = useState({ ...NOTHING, isRunning: false, problem: null });
  const [round, setRound] = useState(0);
  const aborting = useRef(null);
  const key = asked && JSON.stringify(asked);
  useEffect(() => {
    if (!key) return undefined;
    const controller = new AbortController();
    aborting.current = controller;
    run(topic, JSON.parse(key), controller.signal, setState);
    return () => controller.abort();
  }, [topic, key, round]);
  const stop = useCallback(() => {
    aborting.current?.abort();
    setState((old) => ({ ...old, isRunning: false }));
  }, []);
  const reload = useCallback(() => setRound((value) => value + 1), []);
  return { ...state, stop, reload };
}

async function run(topic, asked, signal, setState) {
  const isBackward = asked.direction === "backward";
  let found = NOTHING;
  let at = asked.at;
  setState((old) => ({ ...old, isRunning: true, problem: null }));
  try {
    do {
      const parameters = { ...asked, at, limit: PAGE - found.rows.length };
      const response = await get(withQuery(path`/api/topics/${topic}/records`, parameters), { signal });
      const isFirst = found === NOTHING;
      found = { ...found, ...added(found, response) };
      // A page is between two cursors; what is continued moves one of them.
      if (isFirst || isBackward) found.low = response.low;
      if (isFirst || !isBackward) found.high = response.high;
      at = `cursor:${isBackward ? response.low : response.high}`;
      setState({ ...found, isRunning: found.stopped === "budget", problem: null });
    } while (found.stopped === "budget" && found.rows.length < PAGE && !signal.aborted);
    setState({ ...found, isRunning: false, problem: null });
  } catch (problem) {
    if (problem.name !== "AbortError") setState({ ...found, isRunning: false, problem });
  }
}
