"""The sources of entries: files, standard input, a prompt, one value, or a template."""

import contextlib
import itertools
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, Final

from kaspar.cli.failures import CommandFailed
from kaspar.cli.producing.fakers import Draw
from kaspar.cli.producing.reading import BadEntry, Entry, InputFormat, format_of, read_entries
from kaspar.cli.producing.template import Template
from kaspar.cli.records.json_text import read_json

STANDARD_INPUT: Final = "-"


@dataclass(frozen=True, slots=True)
class Source:
    entries: Iterator[Entry | BadEntry]
    total: int | None = None
    """The number of entries, if it is known."""
    has_records: bool = False
    """Whether the entries are records as printed by `kaspar consume --output json`."""
    is_typed: bool = False
    """Whether a person types the entries: then each record is sent before the next prompt."""


@dataclass(frozen=True, slots=True)
class Files:
    paths: Sequence[str]
    """If empty, standard input is read, as for '-'."""
    form: InputFormat | None
    """If None, the format of each file is derived from its name."""
    form_of_input: InputFormat
    """The format of standard input if `form` is None."""
    delimiter: str = ","
    numbers: bool = False

    def source(self) -> Source:
        return Source(self._entries(), has_records=self.form is InputFormat.RECORDS)

    def _entries(self) -> Iterator[Entry | BadEntry]:
        for path in self.paths or [STANDARD_INPUT]:
            form = self.form or (self.form_of_input if path == STANDARD_INPUT else format_of(path))
            name = path if path != STANDARD_INPUT else None
            with _opened(path) as source:
                yield from read_entries(source, form, name=name, delimiter=self.delimiter, numbers=self.numbers)


@contextlib.contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    if path == STANDARD_INPUT:
        yield sys.stdin.buffer
        return
    try:
        source = open(path, "rb")  # noqa: SIM115  # closed below; only opening it may fail with this sentence
    except OSError as problem:
        raise CommandFailed(f"{path}: {problem.strerror}") from None
    with source:
        yield source


def prompted() -> Source:
    """Lines typed at a prompt, until Ctrl-D."""
    return Source(_typed_lines(), is_typed=True)


def _typed_lines() -> Iterator[Entry]:
    print("Type records, one per line; end with Ctrl-D.", file=sys.stderr)
    number = 0
    while True:
        number += 1
        try:
            yield Entry(f"line {number}", input("> "))
        except EOFError:
            print(file=sys.stderr)
            return
        except KeyboardInterrupt:
            print(file=sys.stderr)
            raise


def drawn(
    template: Template, key: Template | None, *, count: int | None, seed: int | None, needs_fields: bool
) -> Source:
    """Entries generated from a template: `count` of them, or infinitely many (None). `needs_fields`: options refer to
    fields of the value, so it has to be parsed.
    """
    numbers = itertools.count() if count is None else iter(range(count))
    return Source(_drawn(template, key, numbers, random.Random(seed), needs_fields), total=count)


def _drawn(
    template: Template, key: Template | None, numbers: Iterator[int], rng: random.Random, needs_fields: bool
) -> Iterator[Entry | BadEntry]:
    for number in numbers:
        draw = Draw(rng, number, datetime.now(UTC))
        place, text = f"record {number + 1}", template.render(draw)
        fields = None
        if needs_fields:
            try:
                fields = read_json(text)
            except ValueError as problem:
                yield BadEntry(place, f"not JSON: {problem}")
                continue
        yield Entry(place, text, fields, None if key is None else key.render(draw))
