// One stream of events for the page, with the topics that its components watch. It is closed while the page cannot be
// seen: browsers allow six connections to a host, for all pages together.
import { Shared, useEffect, useState } from "./ui.js";

const SILENT_MS = 25_000; // the console sends a beat every ten seconds
const HIDDEN_MS = 5_000;
const LOST_MS = 1_500; // a page that is being closed, or a short gap, shows no banner
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;

/** "open", "connecting" or "lost". */
export const connection = new Shared("connecting");

class Stream {
  #watchers = new Map(); // by topic: Sets of callbacks
  #latest = new Map();
  #source = null;
  #open = "";
  #timers = {};
  #pauseMs = FIRST_PAUSE_MS;

  watch(topic, callback) {
    if (!this.#watchers.has(topic)) this.#watchers.set(topic, new Set());
    this.#watchers.get(topic).add(callback);
    if (this.#latest.has(topic)) callback(this.#latest.get(topic));
    this.#later("topics", 20, () => this.#refresh());
    return () => {
      const callbacks = this.#watchers.get(topic);
      callbacks.delete(callback);
      if (callbacks.size === 0) {
        this.#watchers.delete(topic);
        this.#latest.delete(topic);
      }
      this.#later("topics", 200, () => this.#refresh());
    };
  }

  hide() {
    this.#later("hidden", HIDDEN_MS, () => this.#close());
  }

  show() {
    clearTimeout(this.#timers.hidden);
    this.#refresh();
  }

  #later(name, ms, action) {
    clearTimeout(this.#timers[name]);
    this.#timers[name] = setTimeout(action, ms);
  }

  #close() {
    this.#source?.close();
    this.#source = null;
    this.#open = "";
    clearTimeout(this.#timers.silent);
  }

  #refresh() {
    const topics = [...this.#watchers.keys()].sort();
    const wanted = topics.map((topic) => `topic=${encodeURIComponent(topic)}`).join("&");
    if (document.visibilityState === "hidden" || (wanted === this.#open && this.#source)) return;
    this.#close();
    if (topics.length === 0) return;
    this.#open = wanted;
    const source = new EventSource(`/api/events?${wanted}`);
    this.#source = source;
    const alive = () => {
      if (this.#source !== source) return;
      this.#pauseMs = FIRST_PAUSE_MS;
      clearTimeout(this.#timers.lost);
      clearTimeout(this.#timers.retry);
      this.#timers.lost = null;
      connection.set("open");
      this.#later("silent", SILENT_MS, () => this.#failed(source));
    };
    source.addEventListener("open", alive);
    source.addEventListener("beat", alive);
    source.addEventListener("error", () => this.#failed(source));
    for (const topic of topics) {
      source.addEventListener(encodeURIComponent(topic), (event) => {
        alive();
        const message = JSON.parse(event.data);
        this.#latest.set(topic, message);
        for (const callback of this.#watchers.get(topic) ?? []) callback(message);
      });
    }
  }

  #failed(source) {
    if (this.#source !== source) return;
    this.#close();
    this.#timers.lost ??= setTimeout(() => connection.set("lost"), LOST_MS);
    this.#later("retry", this.#pauseMs * (0.5 + Math.random() / 2), () => this.#refresh());
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
  }
}

const stream = new Stream();
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "hidden") stream.hide();
  else stream.show();
});

/** The newest {value} or {problem} of a topic, or null before it has arrived. */
export function useLive(topic) {
  const [message, setMessage] = useState({ topic, content: null });
  useEffect(() => (topic ? stream.watch(topic, (content) => setMessage({ topic, content })) : undefined), [topic]);
  return message.topic === topic ? message.content : null;
}

/** Calls back with each {value} or {problem} of a topic. */
export function useEvents(topic, callback) {
  useEffect(() => stream.watch(topic, callback), [topic]);
}
