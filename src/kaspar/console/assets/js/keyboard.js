// Keys of the whole page: / searches, g and a letter go to a view, ? shows them all.
import { navigate } from "./router.js";

const PAUSE_MS = 1_000;

const isTyping = (element) =>
  element instanceof HTMLElement && (element.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName));

/** `views` have a name and a key. Returns what ends it. */
export function listenToKeys(views, showHelp) {
  let goesAt = -Infinity;
  const pressed = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector("dialog[open]")) return;
    if (performance.now() - goesAt < PAUSE_MS) {
      goesAt = -Infinity;
      const view = views.find((each) => each.key === event.key);
      if (view) {
        event.preventDefault();
        navigate(view.name === "overview" ? "#/" : `#/${view.name}`);
      }
      return;
    }
    if (event.key === "g") goesAt = performance.now();
    if (event.key === "?") showHelp();
    if (event.key === "/") {
      const search = document.querySelector("[data-search]");
      if (search) {
        event.preventDefault();
        search.focus();
        search.select();
      }
    }
  };
  document.addEventListener("keydown", pressed);
  return () => document.removeEventListener("keydown", pressed);
}
