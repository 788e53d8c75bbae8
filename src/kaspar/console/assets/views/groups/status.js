// The statuses that the monitor gives to groups and partitions, by Burrow's names.
import { html } from "../../js/ui.js";
import { Status } from "../../js/components/values.js";

const MEANINGS = {
  OK: ["good", "The group is keeping up."],
  WARN: ["warn", "It commits, but its lag is growing."],
  STALL: ["bad", "It is assigned to a member, but its offset does not move."],
  STOP: ["bad", "Records are waiting, but no member reads it."],
  REWIND: ["bad", "Its offset moved backwards."],
  ERR: ["bad", "A partition is stalled, stopped or rewound."],
  NOTFOUND: ["neutral", "The monitor has no committed offsets for it."],
};
const UNSEEN = ["neutral", "The monitor has no committed offsets for it."];

export function LagStatus({ status }) {
  const [kind, meaning] = MEANINGS[status] ?? UNSEEN;
  return html`<span title=${meaning}><${Status} kind=${kind}>${status ?? "unknown"}<//></span>`;
}

export const kindOf = (status) => (MEANINGS[status] ?? UNSEEN)[0];
export const meaningOf = (status) => (MEANINGS[status] ?? UNSEEN)[1];

const STATES = { Stable: "good", Empty: "neutral", Dead: "neutral" };

/** Kafka's state of a group: anything else is a rebalance. */
export const GroupState = ({ state }) => html`<${Status} kind=${STATES[state] ?? "warn"}>${state || "unknown"}<//>`;
