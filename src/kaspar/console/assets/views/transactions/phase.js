// How far a transaction is, and how long it has been open.
import { html } from "../../js/ui.js";
import { Status } from "../../js/components/values.js";
import { duration, UNKNOWN } from "../../js/format.js";

const KINDS = { open: "warn", prepared: "warn", ended: "neutral" };

export const Phase = ({ transaction }) => html`<${Status} kind=${KINDS[transaction.phase]}>${transaction.state}<//>`;

/** One that has ended keeps the time of its start, and is open no longer. */
export const openFor = ({ phase, start_time_ms: start }) => (phase === "ended" || start === null ? UNKNOWN : duration(Math.max(0, Date.now() - start)));

export const timeoutOf = (transaction) => (transaction.is_two_phase ? "none (two-phase)" : duration(transaction.timeout_ms));
