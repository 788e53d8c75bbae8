"""What keeps people from using a page, found by axe-core."""

from functools import cache
from typing import Final, Literal

from playwright.sync_api import Page

from tests.peers.axe import axe_source

_RUN: Final = """async () => {
    const found = await axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]});
    const sentence = (rule, node) => `${rule.id}: ${rule.help}: ${node.html.slice(0, 200)}`;
    return found.violations.flatMap((rule) => rule.nodes.map((node) => sentence(rule, node)));
}"""

_THEMES: Final[tuple[Literal["dark"], Literal["light"]]] = ("dark", "light")
_source = cache(axe_source)


def check_accessibility(page: Page) -> None:
    """Of what the page shows now, in both themes. It stays in the light one, unless a theme was chosen in it."""
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(_source())
    for theme in _THEMES:
        page.emulate_media(color_scheme=theme)
        found = page.evaluate(_RUN)
        assert not found, "\n".join([f"In the {theme} theme:", *found])
