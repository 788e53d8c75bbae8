// Lines over time, drawn by uPlot. The newest values are in the caption too, so that nobody has to read the picture.
import uPlot from "../../vendor/uplot.js";
import { html, useEffect, useRef, useState } from "../ui.js";
import { clock, withUnit } from "../format.js";
import { colour, onColoursChange } from "../theme.js";

const HEIGHT_PX = 150;
const SHORTEST_S = 60; // a line of few points does not fill the whole width
const WITHOUT_SECONDS_S = 600;
const LINES = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5", "--line-6"];

/** Series of different times on one axis: [[seconds], [values], ...], with null where a series has no value. */
function aligned(series) {
  const times = [...new Set(series.flatMap(({ points }) => points.map(([at]) => at)))].sort((left, right) => left - right);
  const columns = series.map(({ points }) => {
    const values = new Map(points);
    return times.map((at) => values.get(at) ?? null);
  });
  return [times.map((at) => at / 1000), ...columns];
}

function options(series, unit, width) {
  const text = colour("--text-2");
  const axis = { stroke: text, grid: { stroke: colour("--border-soft"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
  return {
    width,
    height: HEIGHT_PX,
    padding: [8, 24, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    scales: { x: { range: (_, low, high) => [Math.min(low, high - SHORTEST_S), high] }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.1 : 1] } },
    axes: [
      { ...axis, space: 80, size: 28, values: (drawn, ticks) => ticks.map((tick) => shownTime(drawn, tick)) },
      { ...axis, size: 74, space: 34, values: (_, ticks) => ticks.map((tick) => withUnit(tick, unit)) },
    ],
    series: [
      {},
      ...series.map(({ label }, index) => ({
        label,
        stroke: colour(LINES[index % LINES.length]),
        fill: series.length === 1 ? colour("--line-1-fill") : undefined,
        width: 1.6,
        points: { show: false },
        spanGaps: true,
      })),
    ],
  };
}

const shownTime = ({ scales }, seconds) => clock(seconds * 1000).slice(0, scales.x.max - scales.x.min > WITHOUT_SECONDS_S ? 5 : 8);

/** `series` are {label, points: [[ms, value], ...]}; `unit` is one of format.js. */
export function Chart({ title, series, unit = "number", empty = "No data yet." }) {
  const place = useRef(null);
  const plot = useRef(null);
  const [colours, setColours] = useState(0);
  const [hovered, setHovered] = useState(null);
  const hasPoints = series.some(({ points }) => points.length > 1);
  const labels = series.map(({ label }) => label).join("\n");
  useEffect(() => onColoursChange(() => setColours((value) => value + 1)), []);
  useEffect(() => {
    if (!hasPoints) return undefined;
    const element = place.current;
    const made = new uPlot(options(series, unit, element.clientWidth || 300), aligned(series), element);
    made.over.addEventListener("mousemove", () => setHovered(made.cursor.idx));
    made.over.addEventListener("mouseleave", () => setHovered(null));
    plot.current = made;
    const observer = new ResizeObserver(() => element.clientWidth && made.setSize({ width: element.clientWidth, height: HEIGHT_PX }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [hasPoints, labels, unit, colours]);
  useEffect(() => plot.current?.setData(aligned(series)), [series]);
  const valueOf = (index) => {
    const hoveredValue = hovered === null ? undefined : plot.current?.data[index + 1]?.[hovered];
    return hoveredValue ?? series[index].points.at(-1)?.[1];
  };
  return html`
    <figure class="chart">
      <figcaption>
        <span class="title">${title}</span>
        <span class="values">${series.map(
          ({ label }, index) => html`
            <span class="value" key=${label}>
              ${series.length > 1 && html`<span class=${`swatch line-${(index % LINES.length) + 1}`} aria-hidden="true"></span>${label} `}
              <strong>${withUnit(valueOf(index), unit)}</strong>
            </span>
          `,
        )}</span>
      </figcaption>
      ${hasPoints ? html`<div class="plot" ref=${place} aria-hidden="true"></div>` : html`<p class="state">${empty}</p>`}
    </figure>
  `;
}

/** Points with newer ones at their end, and without those before `since`. */
export function withPoint(points, at, value, since) {
  const last = points.at(-1);
  if (value === null || value === undefined || (last && at <= last[0])) return points;
  const first = points.findIndex(([when]) => when >= since);
  return [...points.slice(first < 0 ? points.length : first), [at, value]];
}
