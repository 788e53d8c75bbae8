// Writes records again, byte for byte: one of them, or all dead letters that match.
import { html, useEffect, useRef, useState } from "../../js/ui.js";
import { change, get, path, withQuery } from "../../js/api.js";
import { count, number } from "../../js/format.js";
import { Checkbox, ChangeForm, TextField } from "../../js/components/form.js";
import { Dialog } from "../../js/components/dialog.js";
import { toast } from "../../js/components/toast.js";

/** One record, to its own topic or to another; a dead letter, to the topic of its origin. */
export function ReplayOne({ topic, record, onClose, onDone }) {
  const letter = record.dead_letter;
  const [target, setTarget] = useState(letter?.topic ?? topic);
  const [keepsTime, setKeepsTime] = useState(Boolean(letter));
  const submit = async () => {
    const written = await change("POST", path`/api/topics/${topic}/replays`, {
      partition: record.partition,
      offset: record.offset,
      topic: target,
      keep_timestamp: keepsTime,
      as_dead_letter: Boolean(letter),
    });
    toast(`Written to partition ${written.partition} of ${written.topic} at offset ${written.offset}.`);
    onDone();
  };
  return html`
    <${Dialog} title=${letter ? "Replay the dead letter" : "Replay the record"} onClose=${onClose}>
      <${ChangeForm} action="Replay" onSubmit=${submit} onCancel=${onClose}>
        <p>
          The record at offset ${number(record.offset)} of partition ${record.partition} is written again, with the same bytes.
          ${letter && " The headers that make it a dead letter are left out."}
        </p>
        <${TextField} label="To topic" value=${target} onChange=${setTarget} required />
        <${Checkbox} label="Keep its timestamp" value=${keepsTime} onChange=${setKeepsTime} />
      <//>
    <//>
  `;
}

/** All dead letters that match the filter. They are counted first; then the person confirms; then they are replayed in
 * steps, which can be stopped. If one fails, the person can continue there: what was replayed is not replayed again. */
export function ReplayLetters({ topic, filter, onClose, onDone }) {
  const [counted, setCounted] = useState({ found: 0, scanned: 0, done: false });
  const [progress, setProgress] = useState(null);
  const [problem, setProblem] = useState(null);
  const [keepsTime, setKeepsTime] = useState(true);
  const isStopped = useRef(false);
  useEffect(() => {
    const aborting = new AbortController();
    countAll(topic, filter, aborting.signal, setCounted).catch((failure) => failure.name !== "AbortError" && setProblem(failure.message));
    return () => {
      aborting.abort();
      isStopped.current = true;
    };
  }, [topic, filter]);
  const submit = async () => {
    isStopped.current = false;
    const from = progress ?? { replayed: 0, position: counted.start };
    const replayed = await replayAll(topic, filter, from, counted.until, keepsTime, setProgress, () => isStopped.current);
    toast(`${count(replayed, "dead letter")} replayed.`);
    onDone();
  };
  const action = !counted.done ? "Counting…" : progress ? "Continue" : `Replay ${count(counted.found, "dead letter")}`;
  return html`
    <${Dialog} title="Replay dead letters" onClose=${onClose}>
      ${problem && html`<p class="notice bad" role="alert">${problem}</p>`}
      <${ChangeForm} action=${action} onSubmit=${submit} onCancel=${onClose}
        canSubmit=${counted.done && counted.found > 0}>
        <p role="status">
          ${progress
            ? `${number(progress.replayed)} of ${number(counted.found)} replayed.`
            : `${count(counted.found, "dead letter")}${filter ? " that match the filter" : ""}, in ${count(counted.scanned, "record")}${counted.done ? "." : " so far…"}`}
        </p>
        <p>Each is written to the topic of its origin, with the bytes of the original record. They stay in ${" "}<bdi>${topic}</bdi>.</p>
        <${Checkbox} label="Keep the timestamps of the original records" value=${keepsTime} onChange=${setKeepsTime} />
        ${progress && html`<p><button type="button" class="small" onClick=${() => (isStopped.current = true)}>Stop</button></p>`}
      <//>
    <//>
  `;
}

async function countAll(topic, filter, signal, onProgress) {
  let total = { found: 0, scanned: 0, done: false };
  let position = "";
  do {
    const step = await get(withQuery(path`/api/topics/${topic}/dead-letters`, { filter, start: position, until: total.until }), { signal });
    position = step.position;
    total = {
      found: total.found + step.found,
      scanned: total.scanned + step.scanned,
      start: total.start ?? step.start,
      until: step.until,
      done: step.done,
    };
    onProgress(total);
  } while (!total.done);
}

/** Goes on from {replayed, position}. Never tries again by itself: a step whose response was lost may have been made. */
async function replayAll(topic, filter, { replayed, position }, until, keepsTime, onProgress, isStopped) {
  while (!isStopped()) {
    const step = await change("POST", path`/api/topics/${topic}/dead-letters`, { start: position, until, filter, keep_timestamp: keepsTime }).catch((failure) => {
      if (failure.status) throw failure;
      throw new Error(`${count(replayed, "dead letter")} replayed; whether those that follow were written is unknown. ${failure.message}`);
    });
    replayed += step.replayed;
    position = step.position;
    onProgress({ replayed, position });
    if (step.problem) throw new Error(`${count(replayed, "dead letter")} replayed, then: ${step.problem}`);
    if (step.done) break;
  }
  return replayed;
}
