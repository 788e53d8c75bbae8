// The overview: the cluster's health in one look.
import { html } from "../js/ui.js";
import { Page } from "../js/page.js";

export default function Overview() {
  return html`<${Page} title="Overview" />`;
}
