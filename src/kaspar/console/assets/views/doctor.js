// The doctor's findings: what is wrong or soon will be, the worst first, with the command that mends it.
import { html, useState } from "../js/ui.js";
import { change, useResource } from "../js/api.js";
import { Empty, Loaded } from "../js/components/states.js";
import { toast } from "../js/components/toast.js";
import { Status, Text } from "../js/components/values.js";
import { clock, count } from "../js/format.js";
import { useLive } from "../js/live.js";
import { Page, Section } from "../js/page.js";

const SEVERITIES = {
  problem: { title: "Problems", kind: "bad", none: "No problems." },
  warning: { title: "Warnings", kind: "warn", none: "No warnings." },
  note: { title: "Notes", kind: "neutral", none: "No notes." },
};

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast("Command copied.");
  } catch {
    toast("The browser does not allow copying. Select the command instead.", "bad");
  }
}

const Command = ({ text }) => html`
  <div class="command">
    <code tabindex="0"><${Text}>${text}<//></code>
    <button type="button" class="small" aria-label=${`Copy ${text}`} onClick=${() => copy(text)}>Copy</button>
  </div>
`;

const Finding = ({ finding, kind }) => html`
  <article class=${`finding ${kind}`}>
    <h3>${finding.title} <${Status} kind=${kind}><${Text}>${finding.resource}<//><//></h3>
    <p><${Text}>${finding.detail}<//></p>
    ${finding.command && html`<${Command} text=${finding.command} />`}
    <p class="hint"><code>${finding.code}</code></p>
  </article>
`;

function Severity({ group }) {
  const { title, kind, none } = SEVERITIES[group.severity];
  return html`
    <${Section} title=${`${title} (${group.findings.length})`}>
      ${group.findings.length === 0
        ? html`<${Empty}>${none}<//>`
        : html`<div class="findings">${group.findings.map((each, at) => html`<${Finding} key=${`${each.code} ${each.resource} ${at}`} finding=${each} kind=${kind} />`)}</div>`}
    <//>
  `;
}

export default function Doctor() {
  const resource = useResource("/api/findings");
  const live = useLive("findings")?.value;
  const [isLooking, setLooking] = useState(false);
  const look = async () => {
    setLooking(true);
    try {
      const { total } = await change("POST", "/api/findings");
      toast(total === 0 ? "The doctor found nothing." : `The doctor reports ${count(total, "finding")}.`);
      resource.reload();
    } catch (problem) {
      toast(problem.message, "bad");
    } finally {
      setLooking(false);
    }
  };
  const actions = html`<button type="button" class="primary" disabled=${isLooking} onClick=${look}>${isLooking ? "Checking…" : "Check now"}</button>`;
  const shown = { ...resource, data: resource.isLoading ? resource.data : (live ?? resource.data) };
  const looked = shown.data?.looked_at_ms;
  const intro = `The doctor checks the cluster about once a minute${looked ? `, last at ${clock(looked)}` : ""}.`;
  return html`
    <${Page} title="Doctor" actions=${actions} intro=${intro}>
      <${Loaded} resource=${shown} what="findings">
        ${(data) => html`
          ${data.hidden > 0 && html`<p class="notice">${count(data.hidden, "finding")} ${data.hidden === 1 ? "is" : "are"} hidden: you are not permitted to see the resource.</p>`}
          ${data.severities.map((group) => html`<${Severity} key=${group.severity} group=${group} />`)}
        `}
      <//>
    <//>
  `;
}
