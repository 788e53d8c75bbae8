// The last transaction of a transactional id, and its end by force.
import { html } from "../../js/ui.js";
import { path, useResource } from "../../js/api.js";
import { Empty, Loaded } from "../../js/components/states.js";
import { KeyValue, Text } from "../../js/components/values.js";
import { number, time, UNKNOWN } from "../../js/format.js";
import { Page, Section } from "../../js/page.js";
import { link } from "../../js/router.js";
import { askAndChange } from "../common/changing.js";
import { openFor, Phase, timeoutOf } from "./phase.js";

/** "orders-12" is on the topic "orders". */
const topicOf = (partition) => partition.slice(0, partition.lastIndexOf("-"));

export function TransactionView({ name }) {
  const url = path`/api/transactions/${name}`;
  const resource = useResource(url, { every: 5_000 });
  const transaction = resource.data;
  const end = async () => {
    const question = {
      title: "Abort this transaction?",
      text: "Its records are aborted and its producer is fenced: the producer must be restarted.",
      details: transaction.partitions,
      typed: name,
      action: "Abort and fence",
      isDangerous: true,
    };
    const { transactional_id, producer_id, producer_epoch, start_time_ms } = transaction;
    const body = { transactional_id, producer_id, producer_epoch, start_time_ms };
    if (await askAndChange(question, "POST", url, { body, done: `The transaction of ${name} was aborted.` })) resource.reload();
  };
  const canEnd = transaction && transaction.phase !== "ended";
  const actions = canEnd && html`<button type="button" class="danger" onClick=${end}>Abort transaction…</button>`;
  return html`
    <${Page} title=${name} crumbs=${[["Transactions", "#/transactions"]]} actions=${actions}>
      <${Loaded} resource=${resource} what="the transaction">
        ${(data) => html`
          ${data.is_two_phase &&
          html`<p class="notice">This transaction never times out: another system decides its outcome (two-phase commit). Aborting it here may contradict that decision.</p>`}
          <div class="panel"><${KeyValue} pairs=${[
            ["State", html`<${Phase} transaction=${data} />`],
            ["Open for", openFor(data)],
            ["Began", data.start_time_ms === null ? UNKNOWN : time(data.start_time_ms)],
            ["Timeout", timeoutOf(data)],
            ["Producer id", String(data.producer_id)],
            ["Producer epoch", String(data.producer_epoch)],
            ["Coordinator", `broker ${data.coordinator_id}`],
          ]} /></div>
          <${Section} title=${`Partitions without an end marker (${number(data.partitions.length)})`}>
            ${data.partitions.length === 0
              ? html`<${Empty}>None.<//>`
              : html`<ul class="names">${data.partitions.map((each) => html`<li key=${each}><a href=${link("topics", topicOf(each))}><${Text}>${each}<//></a></li>`)}</ul>`}
          <//>
        `}
      <//>
    <//>
  `;
}
