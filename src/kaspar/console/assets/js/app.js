// The start of the page.
import { html, render } from "./ui.js";
import { Layout } from "./layout.js";

render(html`<${Layout} />`, document.getElementById("app"));
