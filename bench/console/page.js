// What the visits use, in the page: to find what is shown, to act as a person does, and to wait.
const PATIENCE_MS = 25_000;

const main = () => document.querySelector("main");
const has = (selector) => Boolean(main()?.querySelector(selector));
const title = () => main()?.querySelector("h1")?.textContent;
const rows = () => main()?.querySelectorAll("tbody tr[data-row]") ?? [];

Object.assign(globalThis, {
  has,
  title,
  rowCount: () => rows().length,
  firstRow: () => rows()[0]?.textContent.replace(/^[▸▾ ]+/, "") ?? "",
  /** Whether this part of the view is there, and nothing is being loaded. */
  isComplete: (heading, selector) =>
    title() === heading && has(selector) && !has(".loading") && !main().textContent.includes("Loading…"),
  click: (selector) => document.querySelector(selector).click(),
  clickText: (selector, text) =>
    [...main().querySelectorAll(selector)].find((each) => each.textContent.includes(text)).click(),
  type: (label, text) => {
    const field = main().querySelector(`[aria-label="${label}"]`);
    field.value = text;
    field.dispatchEvent(new InputEvent("input", { bubbles: true }));
  },
  /** Looks at every frame. */
  until: async (isSo) => {
    const deadline = performance.now() + PATIENCE_MS;
    while (!isSo()) {
      if (performance.now() > deadline) throw new Error(`not shown in ${location.hash}: ${main()?.innerText.slice(0, 300)}`);
      await new Promise(requestAnimationFrame);
    }
  },
});
