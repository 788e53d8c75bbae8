// Tabs, of which the chosen one is in the query of the address, so that links and reloads keep it.
import { html, useId, useRef } from "../ui.js";
import { setQuery, useRoute } from "../router.js";

/** `tabs` are {name, title, render}. */
export function Tabs({ tabs, label, parameter = "tab" }) {
  const { query } = useRoute();
  const id = useId();
  const list = useRef(null);
  const chosen = tabs.find((each) => each.name === query.get(parameter)) ?? tabs[0];
  const choose = (tab) => setQuery({ [parameter]: tab === tabs[0] ? "" : tab.name });
  const pressed = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = tabs.indexOf(chosen) + step;
    const next = Number.isFinite(step) ? (at + tabs.length) % tabs.length : step > 0 ? tabs.length - 1 : 0;
    choose(tabs[next]);
    list.current.children[next].focus();
  };
  return html`
    <div class="tabs" role="tablist" aria-label=${label} ref=${list} onKeyDown=${pressed}>
      ${tabs.map(
        (tab) => html`
          <button key=${tab.name} type="button" role="tab" id=${`${id}-${tab.name}`} aria-controls=${`${id}-panel`}
            aria-selected=${tab === chosen ? "true" : "false"} tabindex=${tab === chosen ? 0 : -1} onClick=${() => choose(tab)}>
            ${tab.title}
          </button>
        `,
      )}
    </div>
    <div role="tabpanel" id=${`${id}-panel`} aria-labelledby=${`${id}-${chosen.name}`} key=${chosen.name}>${chosen.render()}</div>
  `;
}
