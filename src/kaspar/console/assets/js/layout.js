// What is around every view: navigation, banners, messages, dialogs, and the help about keys.
import { classes, html, useEffect, useState } from "./ui.js";
import { useResource } from "./api.js";
import { Dialog, Questions } from "./components/dialog.js";
import { Problem } from "./components/states.js";
import { Toasts } from "./components/toast.js";
import { clock } from "./format.js";
import { listenToKeys } from "./keyboard.js";
import { connection, useLive } from "./live.js";
import { Page } from "./page.js";
import { useRoute } from "./router.js";
import { useShared } from "./shared.js";
import { chooseTheme, theme, THEMES } from "./theme.js";
import { VIEWS } from "../views/index.js";

const addressOf = (view) => (view.name === "overview" ? "#/" : `#/${view.name}`);

function Navigation({ current, session, isOpen, onLeave }) {
  const sections = [...new Set(VIEWS.map((view) => view.section))];
  const isShown = (view) => !view.needs || session?.[view.needs];
  return html`
    <nav id="navigation" class=${classes("navigation", isOpen && "open")} aria-label="Views">
      ${sections.map(
        (section) => html`
          <div key=${section}>
            <h2>${section}</h2>
            <ul>
              ${VIEWS.filter((view) => view.section === section && isShown(view)).map(
                (view) => html`
                  <li key=${view.name}>
                    <a href=${addressOf(view)} aria-current=${view.name === current ? "page" : undefined} onClick=${onLeave}>${view.title}</a>
                  </li>
                `,
              )}
            </ul>
          </div>
        `,
      )}
    </nav>
  `;
}

function ThemeChoice() {
  const chosen = useShared(theme);
  return html`
    <label class="theme">
      <span>Theme</span>
      <select value=${chosen} onChange=${(event) => chooseTheme(event.target.value)}>
        ${THEMES.map((name) => html`<option key=${name} value=${name} selected=${name === chosen}>${name}</option>`)}
      </select>
    </label>
  `;
}

/** What keeps the page from being up to date. */
function Banners() {
  const state = useShared(connection);
  const cluster = useLive("cluster")?.value;
  return html`
    <div role="status" aria-live="polite">
      ${state === "lost" && html`<p class="banner bad">The connection to the console is lost. Trying again… What is shown may be old.</p>`}
      ${state === "open" &&
      cluster?.problem &&
      html`<p class="banner warn">The cluster does not respond${cluster.at_ms ? ` since ${clock(cluster.at_ms)}` : ""}: ${cluster.problem}</p>`}
    </div>
  `;
}

function Help({ onClose }) {
  const keys = [
    ["/", "Search in this view"],
    ["?", "Show this help"],
    ["↑ ↓ Home End", "Move between the rows of a table"],
    ["Enter", "Open the row"],
    ["Esc", "Close a dialog"],
  ];
  const views = VIEWS.filter((view) => view.key).map((view) => [`g ${view.key}`, `Go to ${view.title}`]);
  return html`
    <${Dialog} title="Keys" onClose=${onClose}>
      <dl class="keys">
        ${[...keys, ...views].map(([key, text]) => html`<div key=${key}><dt><kbd>${key}</kbd></dt><dd>${text}</dd></div>`)}
      </dl>
    <//>
  `;
}

/** The view of an address, loaded when it is first opened. */
function View({ route }) {
  const [loaded, setLoaded] = useState({ name: null, component: null, problem: null });
  const view = VIEWS.find((each) => each.name === route.view);
  useEffect(() => {
    if (!view) return undefined;
    let isWanted = true;
    view.load().then(
      (module) => isWanted && setLoaded({ name: view.name, component: module.default, problem: null }),
      () => isWanted && setLoaded({ name: view.name, component: null, problem: new Error("This view could not be loaded. Reload the page.") }),
    );
    return () => {
      isWanted = false;
    };
  }, [view]);
  if (!view) return html`<${Page} title="Not found"><p>There is no view at this address. <a href="#/">Go to the overview</a></p><//>`;
  if (loaded.name !== view.name) return null;
  if (loaded.problem) return html`<${Problem} problem=${loaded.problem} />`;
  return html`<${loaded.component} key=${`${route.view}/${route.segments.join("/")}`} segments=${route.segments} query=${route.query} />`;
}

export function Layout() {
  const route = useRoute();
  const session = useResource("/api/session", { every: 60_000 }).data;
  const [isOpen, setOpen] = useState(false);
  const [showsHelp, setShowsHelp] = useState(false);
  useEffect(() => listenToKeys(VIEWS, () => setShowsHelp(true)), []);
  const skip = (event) => {
    event.preventDefault();
    (document.querySelector("main h1") ?? document.querySelector("main")).focus();
  };
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <header class="top">
      <button type="button" class="menu" aria-expanded=${isOpen ? "true" : "false"} aria-controls="navigation" onClick=${() => setOpen(!isOpen)}>Menu</button>
      <a class="brand" href="#/"><span class="mark" aria-hidden="true">K</span>Kaspar</a>
      <span class="cluster" title="Bootstrap servers">${session?.bootstrap_servers}</span>
      ${session?.is_read_only && html`<span class="status neutral">read-only</span>`}
      <span class="space"></span>
      ${session?.caller && html`<span class="caller">${session.caller}</span>`}
      <${ThemeChoice} />
      <button type="button" class="small help" onClick=${() => setShowsHelp(true)} aria-label="Keys">?</button>
    </header>
    <${Navigation} current=${route.view} session=${session} isOpen=${isOpen} onLeave=${() => setOpen(false)} />
    <main id="main" tabindex="-1">
      <${Banners} />
      <${View} route=${route} />
    </main>
    ${showsHelp && html`<${Help} onClose=${() => setShowsHelp(false)} />`}
    <${Questions} />
    <${Toasts} />
  `;
}
