"""The table of planted bugs in docs/simulation.md: `python -m tests.sim.page` writes it."""

import re
from pathlib import Path

from tests.sim.mutations import MUTATIONS

PAGE = Path(__file__).parent.parent.parent / "docs" / "simulation.md"
_BEGIN, _END = "<!-- planted bugs -->", "<!-- end of planted bugs -->"


def table() -> str:
    rows = [
        f"| {each.mistake} | {'-' if each.seed is None else each.seed} | {each.found} of {each.of} |"
        for each in MUTATIONS
    ]
    head = ["| planted bug | first seed that found it | found by how many of the first seeds |", "|---|---|---|"]
    return "\n".join([_BEGIN, "", *head, *rows, "", _END])


if __name__ == "__main__":
    PAGE.write_text(re.sub(f"{_BEGIN}.*{_END}", lambda _: table(), PAGE.read_text(), flags=re.DOTALL))
