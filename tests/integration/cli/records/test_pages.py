"""The examples on the page of produce, consume and bench print what the page says."""

import doctest
import re
import shlex
import subprocess
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pytest

from kaspar.testing import Broker
from tests.integration.cli.records.command import Kaspar

PAGE = Path(__file__).parents[4] / "docs" / "cli-produce-consume.md"
PEOPLE = "id,name,age\n1,Ada,36\n2,Bob,41\n"
SAME_WORDS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


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


def stages(command: str) -> list[list[str]]:
    """The words of each part of a pipe."""
    words = shlex.shlex(command, posix=True, punctuation_chars="|")
    words.whitespace_split = True
    return [list(each) for is_pipe, each in groupby(words, lambda word: word == "|") if not is_pipe]


def test_examples_of_a_page_are_found() -> None:
    page = "# A\n\n```console\n$ one\n1\n$ two\n```\n\n```python\n$ no\n```\n"
    assert examples(page) == [Example("one", "1\n"), Example("two", "")]
    assert stages("printf 'a|b' | kaspar consume x") == [["printf", "a|b"], ["kaspar", "consume", "x"]]


@pytest.fixture
def kaspar_alone(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Kaspar]:
    """On a broker without other topics, which would be near names of those on the page."""
    with Broker(process=True, overrides={"group.initial.rebalance.delay.ms": "0"}) as broker:
        yield Kaspar(broker.bootstrap_servers, capfd, monkeypatch)


def test_examples_print_what_the_page_says(
    kaspar_alone: Kaspar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other, since they build on each other. Commands run in this process, which is quicker."""
    (tmp_path / "people.csv").write_text(PEOPLE)
    monkeypatch.chdir(tmp_path)
    for example in examples(PAGE.read_text()):
        printed = _run(kaspar_alone, example.command)
        same = doctest.OutputChecker().check_output(example.expected, printed, SAME_WORDS)
        assert same, f"$ {example.command}\n--- expected\n{example.expected}--- printed\n{printed}"


def _run(kaspar: Kaspar, command: str) -> str:
    """Standard output, then the standard error of all parts of the pipe."""
    output, errors = "", ""
    for program, *words in stages(command):
        if program == "kaspar":
            done = kaspar.run(*words, stdin=output)
            output, errors = done.output, errors + done.errors
        else:
            output = subprocess.run([program, *words], input=output, capture_output=True, text=True, check=True).stdout
    return output + errors
