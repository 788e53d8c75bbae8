// One subject: its versions, what differs between two of them, and its settings.
import { html, useState } from "../../js/ui.js";
import { change, useResource, withQuery } from "../../js/api.js";
import { link, navigate, setQuery } from "../../js/router.js";
import { Page, Section } from "../../js/page.js";
import { confirm } from "../../js/components/dialog.js";
import { SelectField } from "../../js/components/form.js";
import { Loaded } from "../../js/components/states.js";
import { toast } from "../../js/components/toast.js";
import { Code, KeyValue, Status } from "../../js/components/values.js";
import { CopyButton } from "../messages/contents.js";
import { NewVersion } from "./editing.js";
import { LEVELS, MODES } from "./levels.js";

/** A change that is asked for once; what goes wrong is a message. */
async function ask(question, make, done) {
  if (!(await confirm(question))) return;
  try {
    await make();
    toast(done);
  } catch (problem) {
    toast(problem.message, "bad");
  }
}

export function Subject({ name, query }) {
  const resource = useResource(withQuery("/api/schemas/subject", { subject: name }));
  return html`
    <${Page} title=${name} crumbs=${[["Schemas", link("schemas")]]}>
      <${Loaded} resource=${resource} what="the subject">${(subject) => html`<${Versions} ...${{ subject, query, reload: resource.reload }} />`}<//>
    <//>
  `;
}

function Versions({ subject, query, reload }) {
  const [isNew, setNew] = useState(false);
  const chosen = Number(query.get("version")) || subject.versions[0]?.version;
  const against = query.get("against") ?? "";
  const row = subject.versions.find((each) => each.version === chosen);
  const resource = useResource(chosen ? withQuery("/api/schemas/version", { subject: subject.subject, version: chosen }) : null);
  const versions = subject.versions.map((each) => [String(each.version), `${each.version}${each.is_deleted ? " (deleted)" : ""}`]);
  const others = versions.filter(([version]) => Number(version) !== chosen);
  const removed = () => (subject.versions.length > 1 ? (setQuery({ version: "", against: "" }), reload()) : navigate(link("schemas")));
  return html`
    <div class="toolbar schemas-versions">
      <${SelectField} label="Version" value=${String(chosen)} options=${versions} onChange=${(version) => setQuery({ version, against: "" })} />
      ${others.length > 0 && html`<${SelectField} label="Compare with" value=${against} options=${[["", "nothing"], ...others]} onChange=${(version) => setQuery({ against: version })} />`}
      <button type="button" class="primary" onClick=${() => setNew(true)}>New version…</button>
      <${Deletion} ...${{ subject, row, removed, reload }} />
    </div>
    <${Loaded} resource=${resource} what="the schema">
      ${(schema) => html`
        <div class="schemas-content">${against ? html`<${Difference} subject=${subject.subject} old=${Math.min(Number(against), chosen)} current=${Math.max(Number(against), chosen)} />` : html`<${Schema} schema=${schema} />`}</div>
        ${isNew && html`<${NewVersion} subject=${subject.subject} schema=${schema} onClose=${() => setNew(false)} onDone=${() => (setNew(false), setQuery({ version: "", against: "" }), reload())} />`}
      `}
    <//>
    <${Settings} subject=${subject} reload=${reload} />
  `;
}

function Schema({ schema }) {
  return html`
    <${KeyValue} pairs=${[
      ["Id", schema.id],
      ["Type", schema.type],
      ["References", schema.references.length ? html`<${References} references=${schema.references} />` : undefined],
      ["Referenced by", schema.referenced_by.length ? html`<${References} references=${schema.referenced_by} />` : undefined],
    ]} />
    <div class="toolbar"><${CopyButton} label="Copy schema" text=${schema.text} /></div>
    <${Code} label="Schema">${schema.formatted}<//>
    ${(schema.metadata || schema.rule_set) && html`<${Section} title="Metadata and rules"><${Code} label="Metadata and rules">${JSON.stringify({ metadata: schema.metadata, ruleSet: schema.rule_set }, null, 2)}<//><//>`}
  `;
}

const References = ({ references }) => html`
  <ul class="schemas-references">
    ${references.map(({ subject, version, name }) => html`<li key=${`${subject}-${version}`}><a href=${link("schemas", subject, { version })}><bdi>${subject}</bdi> v${version}</a>${name && html` <span class="hint">as <bdi>${name}</bdi></span>`}</li>`)}
  </ul>
`;

const MARKS = { added: "+", removed: "−", same: " ", skip: "⋯" };
const WORDS = { added: "added: ", removed: "removed: " };

/** `old` and `current` are versions. */
function Difference({ subject, old, current }) {
  const resource = useResource(withQuery("/api/schemas/diff", { subject, from: old, to: current }));
  return html`
    <${Loaded} resource=${resource} what="the difference">
      ${({ lines }) => html`
        <p class="hint">From version ${old} to ${current}</p>
        ${lines.every(({ kind }) => kind === "same" || kind === "skip")
          ? html`<p class="state">The formatted schemas are identical.</p>`
          : html`
              <pre class="code schemas-diff" tabindex="0" aria-label=${`Difference between versions ${old} and ${current}`}>${lines.map(
                (line, index) => html`<span key=${index} class=${`line ${line.kind}`}><span aria-hidden="true">${MARKS[line.kind]} </span>${WORDS[line.kind] && html`<span class="visually-hidden">${WORDS[line.kind]}</span>`}<bdi>${line.kind === "skip" ? `${line.count} lines` : line.text}</bdi>${"\n"}</span>`,
              )}</pre>
            `}
      `}
    <//>
  `;
}

/** First a version or a subject is marked as deleted; then it can be removed for good. */
function Deletion({ subject, row, removed, reload }) {
  if (!row) return null;
  const name = subject.subject;
  const isGone = subject.versions.every((each) => each.is_deleted);
  const one = (permanent) =>
    ask(
      {
        title: permanent ? `Remove version ${row.version} permanently?` : `Delete version ${row.version}?`,
        text: permanent ? "Records written with it can no longer be decoded." : "Records written with it can still be decoded. It can be registered again.",
        action: permanent ? "Remove" : "Delete",
        isDangerous: true,
        typed: permanent ? name : undefined,
      },
      async () => {
        await change("DELETE", withQuery("/api/schemas/version", { subject: name, version: row.version, permanent: permanent && "1" }));
        if (permanent) removed();
        else reload();
      },
      `Version ${row.version} was ${permanent ? "removed" : "deleted"}.`,
    );
  const all = (permanent) =>
    ask(
      {
        title: permanent ? "Remove the subject permanently?" : "Delete the subject?",
        details: [name, ...subject.versions.map((each) => `version ${each.version}`)],
        action: permanent ? "Remove" : "Delete",
        isDangerous: true,
        typed: name,
      },
      async () => {
        await change("DELETE", withQuery("/api/schemas/subject", { subject: name, permanent: permanent && "1" }));
        if (permanent) navigate(link("schemas"));
        else reload();
      },
      `The subject was ${permanent ? "removed" : "deleted"}.`,
    );
  return html`
    ${row.is_deleted && html`<${Status} kind="warn">deleted<//>`}
    <button type="button" class="danger" onClick=${() => one(row.is_deleted)}>${row.is_deleted ? "Remove version permanently…" : "Delete version…"}</button>
    <button type="button" class="danger" onClick=${() => all(isGone)}>${isGone ? "Remove subject permanently…" : "Delete subject…"}</button>
  `;
}

function Settings({ subject, reload }) {
  const set = (what, text) => async (value) => {
    const shown = value || "that of the registry";
    await ask(
      { title: `Change the ${text}?`, text: `It will be ${shown}.`, action: "Change" },
      () => change("PUT", `/api/schemas/${what}`, { subject: subject.subject, value: value || null }),
      `The ${text} is now ${shown}.`,
    );
    reload();
  };
  const options = (values, level) => [["", level.is_own ? "the registry's" : `the registry's (${level.value ?? "unknown"})`], ...values];
  return html`
    <${Section} title="Settings">
      <div class="columns schemas-settings">
        <${SelectField} label="Compatibility" value=${subject.compatibility.is_own ? subject.compatibility.value : ""} options=${options(LEVELS, subject.compatibility)} onChange=${set("compatibility", "compatibility")} />
        <${SelectField} label="Mode" value=${subject.mode.is_own ? subject.mode.value : ""} options=${options(MODES, subject.mode)} onChange=${set("mode", "mode")} />
      </div>
    <//>
  `;
}
