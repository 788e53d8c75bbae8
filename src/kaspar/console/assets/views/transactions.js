// Transactions: all of them and those that hang, or one.
import { html } from "../js/ui.js";
import { Tabs } from "../js/components/tabs.js";
import { Page } from "../js/page.js";
import { Hanging } from "./transactions/hanging.js";
import { TransactionList } from "./transactions/list.js";
import { TransactionView } from "./transactions/transaction.js";

export default function Transactions({ segments: [name] }) {
  if (name !== undefined) return html`<${TransactionView} name=${name} />`;
  return html`
    <${Page} title="Transactions">
      <${Tabs} label="Kinds of transactions" tabs=${[
        { name: "all", title: "Transactional ids", render: () => html`<${TransactionList} />` },
        { name: "hanging", title: "Hanging", render: () => html`<${Hanging} />` },
      ]} />
    <//>
  `;
}
