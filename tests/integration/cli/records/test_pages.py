"""The examples on the page of produce and consume, run by a shell as they stand."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from kaspar.testing import Broker

PAGE = Path(__file__).parents[4] / "docs" / "cli-produce-consume.md"
PEOPLE = "id,name,age\n1,Ada,36\n2,Bob,41\n"
COMMAND_SECONDS = 60.0


class Example(NamedTuple):
    command: str
    expected: str


def examples(page: str) -> list[Example]:
    """The commands behind `$`, each with the lines that follow it."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            found.append(Example(command, expected))
    return found


def test_examples_of_a_page_are_found() -> None:
    page = "# A\n\n```console\n$ one\n1\n$ two\n```\n\n```python\n$ no\n```\n"
    assert examples(page) == [Example("one", "1\n"), Example("two", "")]


@pytest.mark.timeout(300)
def test_examples_print_what_the_page_says(tmp_path: Path) -> None:
    """In one folder and against one broker of their own, one after the other, since they build on each other."""
    program = tmp_path / "bin" / "kaspar"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m kaspar.cli.main "$@"\n')
    program.chmod(0o755)
    (tmp_path / "people.csv").write_text(PEOPLE)
    source = Path(__file__).parents[4] / "src"
    with Broker(process=True, overrides={"group.initial.rebalance.delay.ms": "0"}) as broker:
        environment = {
            **os.environ,
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(source),
            "KASPAR_BOOTSTRAP_SERVER": broker.bootstrap_servers,
        }
        for example in examples(PAGE.read_text()):
            printed = _run(example.command, tmp_path, environment)
            same = doctest.OutputChecker().check_output(example.expected, printed, doctest.ELLIPSIS)
            assert same, f"$ {example.command}\n--- expected\n{example.expected}--- printed\n{printed}"


def _run(command: str, folder: Path, environment: dict[str, str]) -> str:
    """Standard output, then standard error."""
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )
    return done.stdout + done.stderr
