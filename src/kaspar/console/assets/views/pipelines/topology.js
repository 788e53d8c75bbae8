// The picture of a streams program: its steps in layers, records flowing downwards. Everything is made of elements with
// text in them; names of topics and steps are never markup.
import { classes, html, useMemo } from "../../js/ui.js";

const WIDTH = 210;
const HEIGHT = 46;
const GAP_X = 22;
const GAP_Y = 38;
const MARGIN = 12;
const LONGEST = 27;

const short = (text) => (text.length > LONGEST ? `…${text.slice(1 - LONGEST)}` : text);

/** "KSTREAM-AGGREGATE-0000000003" is "aggregate 3". */
function labelOf(name) {
  const match = /^(?:KSTREAM|KTABLE)-(.+)-0*(\d+)$/.exec(name);
  return match ? `${match[1].toLowerCase().replaceAll("-", " ")} ${match[2] || 0}` : name;
}

/** Where each step stands: in the layer of its depth, beside the others in the order of their parents. */
export function placed(nodes) {
  const layers = [];
  for (const node of nodes) (layers[node.depth] ??= []).push(node);
  const rows = layers.filter(Boolean);
  const columns = new Map();
  const parents = new Map(nodes.map((node) => [node.name, []]));
  for (const node of nodes) for (const child of node.children) parents.get(child)?.push(node.name);
  const widest = Math.max(...rows.map((row) => row.length));
  rows.forEach((row) => {
    const wish = (node) => {
      const above = parents.get(node.name).filter((name) => columns.has(name)).map((name) => columns.get(name));
      return above.length ? above.reduce((sum, each) => sum + each, 0) / above.length : 0;
    };
    const inOrder = row.map((node) => [wish(node), node]).sort(([left], [right]) => left - right);
    inOrder.forEach(([, node], at) => columns.set(node.name, at + (widest - row.length) / 2));
  });
  const places = new Map();
  rows.forEach((row, depth) => {
    for (const node of row) {
      places.set(node.name, { x: MARGIN + columns.get(node.name) * (WIDTH + GAP_X), y: MARGIN + depth * (HEIGHT + GAP_Y) });
    }
  });
  const width = 2 * MARGIN + widest * (WIDTH + GAP_X) - GAP_X;
  return { places, width, height: 2 * MARGIN + rows.length * (HEIGHT + GAP_Y) - GAP_Y };
}

function Edge({ from, to, isShuffle }) {
  const [x1, y1, x2, y2] = [from.x + WIDTH / 2, from.y + HEIGHT, to.x + WIDTH / 2, to.y];
  const bend = Math.max(16, Math.abs(y2 - y1) / 2);
  return html`<path class=${classes("edge", isShuffle && "shuffle")} d=${`M${x1},${y1} C${x1},${y1 + bend} ${x2},${y2 - bend} ${x2},${y2}`} marker-end="url(#arrow)" />`;
}

function Box({ node, at }) {
  const things = [...node.topics, ...node.stores];
  const kind = node.kind === "processor" && node.stores.length > 0 ? "stateful" : node.kind;
  return html`
    <g class=${`step ${kind}`}>
      <title>${[node.name, ...things].join("\n")}</title>
      <rect x=${at.x} y=${at.y} width=${WIDTH} height=${HEIGHT} rx="7" />
      <text x=${at.x + WIDTH / 2} y=${at.y + (things.length ? 19 : 28)}>${short(labelOf(node.name))}</text>
      ${things.length > 0 && html`<text class="small" x=${at.x + WIDTH / 2} y=${at.y + 36}>${short(things.join(", "))}</text>`}
    </g>
  `;
}

function Part({ part }) {
  const { places, width, height } = useMemo(() => placed(part.nodes), [part]);
  const shuffled = new Set(part.shuffled);
  const edges = part.nodes.flatMap((node) =>
    node.children.map((child) => ({ key: `${node.name} --> ${child}`, from: places.get(node.name), to: places.get(child), isShuffle: shuffled.has(`${node.name} --> ${child}`) || shuffled.has(node.name) })),
  );
  return html`
    <figure class="topology">
      <figcaption>Sub-topology ${part.number}${part.is_global && ", for a global table"}</figcaption>
      <div class="drawing" tabindex="0" role="region" aria-label=${`Picture of sub-topology ${part.number}`}>
        <svg role="img" aria-label=${`${part.nodes.length} steps; the description has them as text`} width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`}>
          <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" /></marker></defs>
          ${edges.map(({ key, from, to, isShuffle }) => html`<${Edge} key=${key} from=${from} to=${to} isShuffle=${isShuffle} />`)}
          ${part.nodes.map((node) => html`<${Box} key=${node.name} node=${node} at=${places.get(node.name)} />`)}
        </svg>
      </div>
    </figure>
  `;
}

export const Topology = ({ parts }) => html`
  <div class="topologies">${parts.filter((part) => part.nodes.length > 0).map((part) => html`<${Part} key=${part.number} part=${part} />`)}</div>
  <p class="hint">Green reads topics, orange writes topics, blue has a store. Dashed lines repartition records by key.</p>
`;
