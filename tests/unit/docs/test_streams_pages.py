"""The programs on the pages of streams run as they stand; those that need a broker are at least topologies."""

import re
from pathlib import Path

import pytest

from kaspar.streams import KafkaStreams

DOCS = Path(__file__).parents[3] / "docs"
PAGES = [DOCS / "streams.md", *sorted((DOCS / "streams").glob("*.md"))]
PROGRAMS = [
    pytest.param(program, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, program in enumerate(re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE))
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_program_runs(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KafkaStreams, "run", lambda streams: streams)
    exec(compile(program, "program", "exec"), {"__name__": "__main__"})
