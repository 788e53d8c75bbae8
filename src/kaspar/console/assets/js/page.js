// The frame of a view: its heading, which gets the focus when the view is opened, and where it stands.
import { html, useLayoutEffect, useRef } from "./ui.js";

/** `crumbs` are [text, address] of what is above it; `actions` stand beside the heading. */
export function Page({ title, crumbs = [], actions, intro, children }) {
  const heading = useRef(null);
  useLayoutEffect(() => {
    document.title = `${title} – Kaspar`;
    heading.current.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }, [title]);
  return html`
    ${crumbs.length > 0 &&
    html`<nav class="crumbs" aria-label="Breadcrumbs">${crumbs.map(([text, address]) => html`<a key=${address} href=${address}>${text}</a><span aria-hidden="true">/</span>`)}</nav>`}
    <header class="page">
      <h1 tabindex="-1" ref=${heading}><bdi>${title}</bdi></h1>
      ${actions && html`<div class="actions">${actions}</div>`}
    </header>
    ${intro && html`<p class="intro">${intro}</p>`}
    ${children}
  `;
}

/** A part of a page with a heading of its own. */
export const Section = ({ title, actions, children }) => html`
  <section>
    ${(title || actions) && html`<header class="section">${title && html`<h2>${title}</h2>`}${actions && html`<div class="actions">${actions}</div>`}</header>`}
    ${children}
  </section>
`;
