"""Links between pages, to headings and to source files lead somewhere; so do the paths that pages name."""

import re
from functools import cache
from pathlib import Path, PurePosixPath

import pytest

from scripts.docs_site import ROOT, for_the_site, links, target_in_repository

PAGES = sorted(str(page.relative_to(ROOT)) for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FOLDERS = ("bench", "deploy", "docs", "examples", "scripts", "src", "tests")


@cache
def headings(page: Path) -> set[str]:
    """The anchors of a page's headings, as both GitHub and mkdocs make them of plain words."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_and_headings_that_are_there(page: str) -> None:
    broken = []
    for link in links((ROOT / page).read_text()):
        found = target_in_repository(link[2], PurePosixPath(page))
        if found is not None:
            path, anchor = ROOT / found[0], found[1]
            if not path.exists() or (anchor and anchor not in headings(path)):
                broken.append(link[0])
    assert broken == []


@pytest.mark.parametrize("page", PAGES)
def test_paths_of_the_repository_that_a_page_names_exist(page: str) -> None:
    named = re.findall(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]*)`", (ROOT / page).read_text())
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_a_link_that_leads_nowhere_is_found() -> None:
    text = "A [page](storage.md#nowhere), code `[a](b)`, and [`code`](../src/gone.py).\n\n    [not](a link)\n"
    assert [link[2] for link in links(text)] == ["storage.md#nowhere", "../src/gone.py"]
    assert "nowhere" not in headings(ROOT / "docs/storage.md")
    assert "which-directories-are-used" in headings(ROOT / "docs/storage.md")


@pytest.mark.parametrize(
    ("page", "text", "on_the_site"),
    [
        ("index.md", "[log](docs/storage.md#x)", "[log](storage.md#x)"),
        ("index.md", "[rules](CONTRIBUTING.md)", "[rules](contributing.md)"),
        ("spark/reading.md", "[start](../../README.md)", "[start](../index.md)"),
        ("spark/reading.md", "[lag](#lag)", "[lag](reading.md#lag)"),
        ("design.md", "[`setup.py`](../setup.py)", "`setup.py`"),
        ("design.md", "[web](https://kafka.apache.org/x)", "[web](https://kafka.apache.org/x)"),
        ("design.md", "`[a](../setup.py)`", "`[a](../setup.py)`"),
    ],
)
def test_links_are_changed_for_the_site(page: str, text: str, on_the_site: str) -> None:
    assert for_the_site(text, page) == on_the_site
