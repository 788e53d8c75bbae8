// Rates of the cluster or of one broker, as live charts.
import { html, useEffect, useMemo, useState } from "../js/ui.js";
import { useResource } from "../js/api.js";
import { Chart, withPoint } from "../js/components/chart.js";
import { Problem } from "../js/components/states.js";
import { useEvents } from "../js/live.js";

const SHOWN_MS = 15 * 60_000;

/** `charts` are {title, unit, lines: {name of the rate: label}}. */
export function RateCharts({ charts, broker }) {
  const url = useMemo(() => {
    const query = new URLSearchParams(charts.flatMap(({ lines }) => Object.keys(lines).map((name) => ["name", name])));
    if (broker !== undefined) query.set("broker", broker);
    return `/api/rates?${query}`;
  }, [charts, broker]);
  const { data, problem } = useResource(url);
  const [points, setPoints] = useState({});
  useEffect(() => data && setPoints(data.points), [data]);
  useEvents(broker === undefined ? "rates" : `rates:${broker}`, ({ value }) => {
    if (!value) return;
    setPoints((old) => {
      const next = {};
      for (const name of Object.keys(old)) {
        const newest = value.points[name]?.[0];
        next[name] = newest ? withPoint(old[name], newest[0], newest[1], Date.now() - SHOWN_MS) : old[name];
      }
      return next;
    });
  });
  if (problem) return html`<${Problem} problem=${problem} />`;
  return html`
    <div class="charts">
      ${charts.map(({ title, unit, lines }) => {
        const series = Object.entries(lines).map(([name, label]) => ({ label, points: points[name] ?? [] }));
        const empty = data ? "Not available: the brokers' metrics pages lack this metric or are not configured." : "Loading…";
        return html`<${Chart} key=${title} ...${{ title, unit, series, empty }} />`;
      })}
    </div>
  `;
}
