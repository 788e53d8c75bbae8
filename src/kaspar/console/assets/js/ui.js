// What every component uses: Preact's functions, and templates in place of JSX.
import htm from "../vendor/htm.js";
import { createElement, Fragment, render } from "../vendor/preact.js";

export const html = htm.bind(createElement);
export { Fragment, render };
export { useCallback, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact-hooks.js";

/** The names of classes that are wanted: classes("row", isLast && "last"). */
export const classes = (...names) => names.filter(Boolean).join(" ");

/** A value that several components share. `use` is the hook by which they follow it. */
export class Shared {
  #value;
  #followers = new Set();

  constructor(value) {
    this.#value = value;
  }

  get value() {
    return this.#value;
  }

  set(value) {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const follower of [...this.#followers]) follower(value);
  }

  follow(follower) {
    this.#followers.add(follower);
    return () => this.#followers.delete(follower);
  }
}
