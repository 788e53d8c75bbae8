// Pipelines: the list, or one of them.
import { html } from "../js/ui.js";
import { PipelineList } from "./pipelines/list.js";
import { PipelineView } from "./pipelines/pipeline.js";

export default function Pipelines({ segments: [name] }) {
  return name === undefined ? html`<${PipelineList} />` : html`<${PipelineView} name=${name} />`;
}
