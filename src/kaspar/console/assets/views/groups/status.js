// The statuses that the monitor gives to groups and partitions, by Burrow's names.
import { html } from "../../js/ui.js";
import { Status } from "../../js/components/values.js";

const MEANINGS = {
  OK: ["good", "Nothing wrong has been seen."],
  WARN: ["warn", "It commits, and its lag grows."],
  STALL: ["bad", "Members read it, but its offset does not move."],
  STOP: ["bad", "Nobody reads it, and records wait."],
  REWIND: ["bad", "It has gone back to an earlier offset."],
  ERR: ["bad", "A partition is stalled, stopped or rewound."],
  NOTFOUND: ["neutral", "The monitor knows no committed offsets of it."],
};
const UNSEEN = ["neutral", "The monitor knows no committed offsets of it."];

export function LagStatus({ status }) {
  const [kind, meaning] = MEANINGS[status] ?? UNSEEN;
  return html`<span title=${meaning}><${Status} kind=${kind}>${status ?? "unknown"}<//></span>`;
}

export const kindOf = (status) => (MEANINGS[status] ?? UNSEEN)[0];
export const meaningOf = (status) => (MEANINGS[status] ?? UNSEEN)[1];

const STATES = { Stable: "good", Empty: "neutral", Dead: "neutral" };

/** Kafka's state of a group: anything else is a rebalance. */
export const GroupState = ({ state }) => html`<${Status} kind=${STATES[state] ?? "warn"}>${state || "unknown"}<//>`;
