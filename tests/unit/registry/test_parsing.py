"""The cache of parsed schemas, and what runs in threads."""

import asyncio
import threading

import pytest

from kaspar.registry import parsing
from kaspar.registry.errors import RegistryError
from kaspar.registry.parsing import Parser, Source, source_of
from kaspar.schemas import SchemaType


def avro(text: str) -> Source:
    return Source(SchemaType.AVRO, text)


def test_schema_is_parsed_once() -> None:
    parser = Parser()
    assert parser.parse(avro('"int"')) is parser.parse(avro('"int"'))


def test_other_references_make_another_schema() -> None:
    parser = Parser()
    fixed = '{{"type":"fixed","name":"A","size":{}}}'
    one, two = (
        parser.parse(Source(SchemaType.AVRO, '{"type":"array","items":"A"}', (("A", fixed.format(size)),)))
        for size in (1, 2)
    )
    assert one.formatted("resolved") != two.formatted("resolved")


def test_cache_is_bounded_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "_MAX_CACHED", 2)
    parser = Parser()
    first = parser.parse(avro('"int"'))
    parser.parse(avro('"long"'))
    assert parser.parse(avro('"int"')) is first
    parser.parse(avro('"float"'))
    assert parser.parse(avro('"int"')) is first, "what was used last is kept"
    assert len(parser._cache._schemas) == 2


def test_cache_is_bounded_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "_MAX_CACHED_CHARACTERS", 100)
    parser = Parser()
    for number in range(50):
        parser.parse(avro(f'{{"type":"enum","name":"E{number}","symbols":["A"]}}'))
    assert sum(source.characters for source in parser._cache._schemas) <= 100


def test_invalid_schema_is_not_cached() -> None:
    parser = Parser()
    for _ in range(2):
        with pytest.raises(RegistryError) as refused:
            parser.parse(avro('"nothing"'))
        assert refused.value.code == 42201
    assert not parser._cache._schemas


@pytest.mark.parametrize(
    ("source", "in_thread"),
    [
        (avro('"int"'), False),
        (avro(" " * 10_000), True),
        (Source(SchemaType.AVRO, '"int"', (("A", " " * 10_000),)), True),
        (Source(SchemaType.JSON, "{}"), True),
        (Source(SchemaType.PROTOBUF, ""), True),
    ],
)
def test_only_small_schemas_of_avro_run_on_the_loop(source: Source, in_thread: bool) -> None:
    parser = Parser()
    try:
        thread = asyncio.run(parser.run([source], threading.current_thread))
        assert (thread is not threading.main_thread()) is in_thread
    finally:
        parser.close()


def test_unknown_format_is_refused() -> None:
    with pytest.raises(RegistryError, match="Invalid schema type XML"):
        source_of("XML", "<a/>", {})
