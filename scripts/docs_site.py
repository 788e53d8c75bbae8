"""Hooks of mkdocs: README and the other root pages become pages of the site, and links lead to pages of the site.

A page links to files by their paths in the repository, as is usual where Markdown is read beside the source. On the
site, links to root pages lead to their copies, and links to files that are not part of the site become plain text.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
DOCS = PurePosixPath("docs")
ROOT_PAGES = {  # the file in the repository, and its page on the site
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "vulnerabilities.md",
    "CHANGELOG.md": "changelog.md",
}
_CODE = re.compile(r"^(```|~~~).*?^\1|^(?: {4}|\t).*?$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, page in ROOT_PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    return for_the_site(markdown, page.file.src_uri)


def for_the_site(markdown: str, page: str) -> str:
    """The text of a page of the site, with its links changed from paths in the repository."""
    source = next((PurePosixPath(root) for root, name in ROOT_PAGES.items() if name == page), DOCS / page)
    parts, end = [], 0
    for link in links(markdown):
        parts += [markdown[end : link.start()], _link_on_the_site(link, source, PurePosixPath(page))]
        end = link.end()
    return "".join([*parts, markdown[end:]])


def links(markdown: str) -> Iterator[re.Match[str]]:
    """Every link outside code: group 1 is its text, group 2 its target."""
    without_code = _CODE.sub(lambda code: re.sub(r"[\[\]()]", "_", code[0]), markdown)
    for found in _LINK.finditer(without_code):
        yield _LINK.match(markdown, found.start()) or found


def target_in_repository(target: str, source: PurePosixPath) -> tuple[PurePosixPath, str] | None:
    """The path and the anchor that a link of the file `source` leads to; None if it leads elsewhere."""
    if re.match(r"[a-z]+:", target):
        return None
    path, _, anchor = target.partition("#")
    return PurePosixPath(os.path.normpath(source.parent / path)) if path else source, anchor


def _link_on_the_site(link: re.Match[str], source: PurePosixPath, page: PurePosixPath) -> str:
    found = target_in_repository(link[2], source)
    if found is None:
        return link[0]
    path, anchor = found
    if str(path) in ROOT_PAGES:
        target = ROOT_PAGES[str(path)]
    elif path.is_relative_to(DOCS):
        target = str(path.relative_to(DOCS))
    elif (ROOT / path).exists():
        return link[1]
    else:
        return link[0]  # mkdocs will say that it is broken
    relative = os.path.relpath(target, page.parent)
    return f"[{link[1]}]({relative}{'#' if anchor else ''}{anchor})"
