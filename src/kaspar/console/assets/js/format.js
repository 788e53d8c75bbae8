// Numbers, sizes and times as people read them. Unknown values are a dash.
export const UNKNOWN = "–";

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 });
const SIZES = ["B", "kB", "MB", "GB", "TB", "PB"];

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

/** 1234567 is "1,234,567". */
export const number = (value) => (isNumber(value) ? grouped.format(value) : UNKNOWN);

/** 1234567 is "1.23 M". */
export function compact(value) {
  if (!isNumber(value)) return UNKNOWN;
  for (const [size, letter] of [[1e9, " G"], [1e6, " M"], [1e4, " k"]]) {
    const scale = letter === " k" ? 1e3 : size;
    if (Math.abs(value) >= size) return `${short.format(value / scale)}${letter}`;
  }
  return short.format(value);
}

/** 1234567 is "1.23 MB". */
export function bytes(value) {
  if (!isNumber(value)) return UNKNOWN;
  let rest = value;
  let step = 0;
  while (Math.abs(rest) >= 1000 && step < SIZES.length - 1) {
    rest /= 1000;
    step += 1;
  }
  return `${short.format(rest)} ${SIZES[step]}`;
}

export const percent = (part) => (isNumber(part) ? `${short.format(part * 100)} %` : UNKNOWN);

/** 93500 is "1 min 34 s". */
export function duration(ms) {
  if (!isNumber(ms)) return UNKNOWN;
  if (ms < 1000) return `${short.format(ms)} ms`;
  const seconds = Math.round(ms / 1000);
  const parts = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = parts.findIndex(([, size]) => seconds >= size);
  const shown = [];
  let rest = seconds;
  for (const [unit, size] of parts.slice(first, first + 2)) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0 || shown.length === 0) shown.push(`${count} ${unit}`);
  }
  return shown.join(" ");
}

/** Local time: "2026-11-18 06:20:11". */
export function time(ms) {
  if (!isNumber(ms) || ms < 0) return UNKNOWN;
  const at = new Date(ms);
  const two = (value) => String(value).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

export const clock = (ms) => (isNumber(ms) ? time(ms).slice(11) : UNKNOWN);

/** "3 topics", "1 topic". */
export const count = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;

const UNITS = {
  bytes: (value) => bytes(value),
  "bytes/s": (value) => (isNumber(value) ? `${bytes(value)}/s` : UNKNOWN),
  "/s": (value) => (isNumber(value) ? `${compact(value)}/s` : UNKNOWN),
  ms: (value) => duration(value),
  s: (value) => duration(isNumber(value) ? value * 1000 : value),
  number: (value) => compact(value),
};

/** A value of a chart, by its unit. */
export const withUnit = (value, unit) => (UNITS[unit] ?? UNITS.number)(value);
