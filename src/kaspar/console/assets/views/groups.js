// Groups: the list, or one of them.
import { html } from "../js/ui.js";
import { GroupView } from "./groups/group.js";
import { GroupList } from "./groups/list.js";

export default function Groups({ segments: [name] }) {
  return name === undefined ? html`<${GroupList} />` : html`<${GroupView} name=${name} />`;
}
