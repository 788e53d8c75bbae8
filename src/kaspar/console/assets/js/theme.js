// Light, dark, or what the system has. theme.js beside index.html applies the choice before the first paint.
import { Shared } from "./ui.js";

export const THEMES = ["system", "light", "dark"];
export const theme = new Shared(document.documentElement.dataset.theme);

export function chooseTheme(name) {
  document.documentElement.dataset.theme = name;
  try {
    localStorage.setItem("kaspar.theme", name);
  } catch {
    // storage is turned off: it lasts as long as the page
  }
  theme.set(name);
}

/** Called whenever colours change, by the person or by the system. Returns what ends that. */
export function onColoursChange(callback) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", callback);
  const end = theme.follow(callback);
  return () => {
    system.removeEventListener("change", callback);
    end();
  };
}

/** The colour that a custom property such as --accent stands for now, for canvases. */
export function colour(property) {
  const probe = document.createElement("span");
  probe.style.color = `var(${property})`;
  probe.hidden = true;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
