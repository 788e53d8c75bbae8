"""Pages whose examples are calls of curl: each prints what the page says."""

import doctest
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tests.integration.cli.records.test_pages import examples
from tests.peers.downloads import require_tool
from tests.peers.missing import unless_missing

DOCS = Path(__file__).parents[2] / "docs"


def check_page(name: str, *, documented: str, served: str, also: Mapping[str, str] = MappingProxyType({})) -> None:
    """One example after the other, since they build on each other. The page names the address `documented`, and the
    service listens on `served`; `also` has other names on the page, and what they stand for."""
    names = {documented: served, **also}
    unless_missing(lambda: require_tool("curl"))
    for example in examples((DOCS / name).read_text()):
        command = example.command
        for on_page, actual in names.items():
            command = command.replace(on_page, actual)
        printed = subprocess.run(command, shell=True, capture_output=True, text=True, check=True).stdout
        found = printed
        for on_page, actual in names.items():
            found = found.replace(actual, on_page)
        same = doctest.OutputChecker().check_output(example.expected, found, doctest.NORMALIZE_WHITESPACE)
        assert same, f"$ {example.command}\n--- expected\n{example.expected}--- printed\n{found}"
