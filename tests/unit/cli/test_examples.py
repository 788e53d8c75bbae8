"""Every call of `kaspar` that help or a page shows is one that works: its commands, options and arguments exist."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from kaspar.cli.main import kaspar
from tests.unit.cli.test_help import ALL

DOCS = Path(__file__).parents[3] / "docs"
PAGES = ("cli.md", "tasks.md")
_COMMENT = re.compile(r"\s{3,}.*$| +# .*$")
_CALL = re.compile(r"(?:^|[`(]|\$ |\| )(kaspar (?:-|\w).*?)(?=`|$)")
_OPERATORS = {"|", "||", "&", "&&", ";", "<", ">", ")", ">&"}
MISTAKES = {"kaspar topic crate orders"}
"""Calls that a page shows because they are wrong."""


def _words(call: str) -> list[str]:
    """Up to the next operator of the shell."""
    reader = shlex.shlex(call, posix=True, punctuation_chars="|&;<>()")
    reader.whitespace_split = True
    words: list[str] = []
    for word in reader:
        if word in _OPERATORS:
            is_redirection = word == ">" and words[-1:] == ["2"]
            return words[:-1] if is_redirection else words
        words.append(word)
    return words


def _calls(text: str) -> Iterator[str]:
    joined = text.replace("\\\n", " ")
    for line in joined.splitlines():
        for match in _CALL.finditer(line.strip() if "|" not in line[:2] else line):
            yield _COMMENT.sub("", match[1])


def _check(call: str) -> None:
    program, *words = _words(call)
    assert program == "kaspar"
    command: click.Command = kaspar
    context = click.Context(kaspar, info_name="kaspar")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        if found is None:
            assert command.name == "broker", f"{call}: there is no command {words[0]}"
            found = command.get_command(context, "run")
            assert found is not None
            words = ["run", *words]
        command, words = found, words[1:]
    if isinstance(command, click.Group):
        return
    own = words[: words.index("--")] if "--" in words else words
    parser = command.make_parser(click.Context(command, info_name=call, resilient_parsing=True))
    _, left, _ = parser.parse_args(list(own))
    assert not left, f"{call}: {left} are too many"


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_examples_of_help(words: tuple[str, ...]) -> None:
    calls = list(_calls(ALL[words].epilog or ""))
    assert calls or "Example" in (ALL[words].epilog or "")
    for call in calls or [(ALL[words].epilog or "").partition("Example: ")[2].split(";")[0]]:
        if call.startswith("kaspar"):
            _check(call)


@pytest.mark.parametrize("page", PAGES)
def test_calls_of_pages(page: str) -> None:
    calls = list(_calls((DOCS / page).read_text(encoding="utf-8")))
    assert len(calls) > 20
    for call in calls:
        if call not in MISTAKES:
            _check(call)
