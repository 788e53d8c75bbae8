"""Where schemas are parsed and compared, what is remembered, and what happens to those that are too much."""

import asyncio
import json
import threading
from collections.abc import Iterator
from itertools import pairwise

import pytest

from kaspar.registry import parsing, schema_work
from kaspar.registry.errors import RegistryError
from kaspar.registry.parsing import KnownAnswers, Parser, SchemaAnswers, Unprepared, source_of
from kaspar.registry.schema_processes import SchemaProcesses, TooComplex
from kaspar.registry.schema_work import Question, SchemaWork, Source, Task, Unparseable
from kaspar.schemas import SchemaType
from kaspar.schemas.levels import CompatibilityLevel
from tests.unit.registry.memory import MemoryRegistry, avro_record

LARGE = " " * 20_000
FIXED = '{"type":"fixed","name":"A","size":1}'


@pytest.fixture
def parser() -> Iterator[Parser]:
    parser = Parser()
    yield parser
    parser.close()


@pytest.fixture
def processes() -> Iterator[SchemaProcesses]:
    processes = SchemaProcesses()
    yield processes
    processes.close()


def avro(text: str) -> Source:
    return Source(SchemaType.AVRO, text)


def canonical(source: Source) -> Task:
    return Task(Question.CANONICAL, source)


def objects(number: int, properties: int, name: str) -> Source:
    """So many closed objects, of which a value is one. Comparing them is comparing each with each."""
    one_of = [
        {
            "type": "object",
            "properties": {f"{name}{each}_{field}": True for field in range(properties)},
            "additionalProperties": False,
        }
        for each in range(number)
    ]
    return Source(SchemaType.JSON, json.dumps({"oneOf": one_of}))


class Compatible(SchemaAnswers):
    """Every schema is compatible with every other. The answer is there at once."""

    async def do(self, task: Task) -> tuple[str, ...]:
        return ("a field is reserved",) if task.field_errors else ()


@pytest.mark.parametrize("field_errors", [(), ("a field is reserved",)])
def test_earlier_versions_with_many_references_do_not_stall_the_event_loop(field_errors: tuple[str, ...]) -> None:
    resolved = 0
    seen = [0]
    source = Source(SchemaType.AVRO, FIXED, tuple((f"n{number}", FIXED) for number in range(1_000)))

    def earlier() -> Iterator[tuple[int, Source]]:
        nonlocal resolved
        for version in range(100, 0, -1):
            resolved += 1
            yield version, source

    async def others() -> None:
        while True:
            seen.append(resolved)
            await asyncio.sleep(0)

    async def check() -> list[str]:
        watching = asyncio.create_task(others())
        await asyncio.sleep(0)
        level = CompatibilityLevel.BACKWARD_TRANSITIVE
        messages = await Compatible().incompatibilities(
            source, level, earlier(), validate_fields=True, field_errors=field_errors
        )
        watching.cancel()
        return messages

    assert asyncio.run(check()) == list(field_errors)
    assert resolved == 100
    assert max(after - before for before, after in pairwise([*seen, resolved])) < 10


def test_schema_is_parsed_once() -> None:
    work = SchemaWork()
    assert work.parsed(avro('"int"')) is work.parsed(avro('"int"'))


def test_other_references_make_another_schema() -> None:
    work = SchemaWork()
    fixed = '{{"type":"fixed","name":"A","size":{}}}'
    one, two = (
        work.parsed(Source(SchemaType.AVRO, '{"type":"array","items":"A"}', (("A", fixed.format(size)),)))
        for size in (1, 2)
    )
    assert one.formatted("resolved") != two.formatted("resolved")


def test_cache_is_bounded_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_work, "_MAX_CACHED", 2)
    work = SchemaWork()
    first = work.parsed(avro('"int"'))
    work.parsed(avro('"long"'))
    assert work.parsed(avro('"int"')) is first
    work.parsed(avro('"float"'))
    assert work.parsed(avro('"int"')) is first, "what was used last is kept"
    assert len(work._cache) == 2


def test_cache_is_bounded_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_work, "_MAX_CACHED_CHARACTERS", 100)
    work = SchemaWork()
    for number in range(50):
        work.parsed(avro(f'{{"type":"enum","name":"E{number}","symbols":["A"]}}'))
    assert sum(source.characters for source in work._cache) <= 100


def test_invalid_schema_is_not_cached() -> None:
    work = SchemaWork()
    for _ in range(2):
        with pytest.raises(Unparseable):
            work.parsed(avro('"nothing"'))
    assert len(work._cache) == 0


@pytest.mark.parametrize(
    ("task", "place"),
    [
        (canonical(avro('"int"')), "loop"),
        (canonical(avro(" " * 10_000 + '"int"')), "thread"),
        (canonical(Source(SchemaType.JSON, "{}")), "thread"),
        (canonical(Source(SchemaType.PROTOBUF, "")), "thread"),
        (canonical(avro(LARGE + '"int"')), "process"),
        (canonical(Source(SchemaType.AVRO, '"A"', (("A", LARGE + FIXED),))), "process"),
        (
            Task(
                Question.INCOMPATIBILITIES,
                Source(SchemaType.JSON, " " * 3_000 + "{}"),
                earlier=((1, Source(SchemaType.JSON, " " * 3_000 + "{}")),),
            ),
            "process",
        ),
    ],
)
def test_only_what_is_quick_is_done_on_the_loop(
    parser: Parser, monkeypatch: pytest.MonkeyPatch, task: Task, place: str
) -> None:
    threads: list[threading.Thread] = []

    def do(task: Task) -> tuple[str, ...]:
        threads.append(threading.current_thread())
        return ()

    monkeypatch.setattr(parser._work, "do", do)
    asyncio.run(parser.do(task))
    if place == "process":
        assert not threads
    else:
        assert (threads[0] is threading.main_thread()) is (place == "loop")


def test_outcomes_are_remembered_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "_MAX_REMEMBERED_CHARACTERS", 100)
    parser = Parser()
    schemas = [Source(SchemaType.JSON, json.dumps({"title": str(number)})) for number in range(20)]

    async def all_of_them() -> None:
        for source in schemas:
            await parser.canonical(source)

    asyncio.run(all_of_them())
    assert parser.known(canonical(schemas[-1])) == (schemas[-1].text.replace(" ", ""),)
    assert parser.known(canonical(schemas[0])) is None


def test_same_schema_of_many_clients_is_parsed_once(parser: Parser, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Task] = []
    do = parser._work.do

    def counting(task: Task) -> tuple[str, ...]:
        done.append(task)
        return do(task)

    monkeypatch.setattr(parser._work, "do", counting)
    source = Source(SchemaType.JSON, "{}")

    async def at_once() -> None:
        await asyncio.gather(*(parser.canonical(source) for _ in range(20)))

    asyncio.run(at_once())
    assert len(done) == 1


def test_process_answers_as_the_registry_itself_would(processes: SchemaProcesses) -> None:
    tasks = [
        canonical(avro('{ "type": "string" }')),
        Task(Question.NORMALIZED, Source(SchemaType.JSON, '{"b": 1, "a": 2}')),
        Task(Question.FIELDS, Source(SchemaType.PROTOBUF, 'syntax = "proto3"; message M { int32 a = 1; }')),
        Task(
            Question.INCOMPATIBILITIES,
            avro('"int"'),
            "",
            CompatibilityLevel.FULL_TRANSITIVE,
            ((2, avro('"int"')), (1, avro('"string"'))),
            True,
            ("a field is reserved",),
        ),
    ]
    work = SchemaWork()

    async def asked() -> list[tuple[str, ...]]:
        return [await processes.do(task) for task in tasks]

    assert asyncio.run(asked()) == [work.do(task) for task in tasks]
    with pytest.raises(Unparseable, match="nothing"):
        asyncio.run(processes.do(canonical(avro('"nothing"'))))


def test_schema_that_takes_too_long_ends_only_its_process() -> None:
    processes = SchemaProcesses(deadline_s=1.5)
    task = Task(
        Question.INCOMPATIBILITIES,
        objects(120, 60, "new"),
        level=CompatibilityLevel.BACKWARD,
        earlier=((1, objects(120, 60, "old")),),
    )
    try:
        with pytest.raises(TooComplex):
            asyncio.run(processes.do(task))
        processes._processes.deadline_s = 60.0
        assert asyncio.run(processes.do(canonical(avro('"int"')))) == ('"int"',)
    finally:
        processes.close()


def test_schema_that_is_too_complex_is_refused(parser: Parser, monkeypatch: pytest.MonkeyPatch) -> None:
    async def do(task: Task) -> tuple[str, ...]:
        raise TooComplex

    monkeypatch.setattr(parser._processes, "do", do)
    with pytest.raises(RegistryError, match="The schema is too complex") as refused:
        asyncio.run(parser.canonical(avro(LARGE)))
    assert refused.value.code == 42201


def test_many_earlier_versions_are_compared_in_batches(parser: Parser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "_BATCH_CHARACTERS", 20)
    done: list[Task] = []
    do = parser._work.do

    def counting(task: Task) -> tuple[str, ...]:
        done.append(task)
        return do(task)

    monkeypatch.setattr(parser._work, "do", counting)
    types = ['"int"', '"int"', '"int"', '"int"', '"string"', '"int"', '"int"']
    earlier = [(len(types) - index, avro(text)) for index, text in enumerate(types)]
    messages = asyncio.run(
        parser.incompatibilities(
            avro('"int"'), CompatibilityLevel.BACKWARD_TRANSITIVE, earlier, validate_fields=False, field_errors=()
        )
    )
    assert "{oldSchemaVersion: 3}" in messages
    assert [len(task.earlier) for task in done] == [4, 3]


def test_decision_does_not_wait_for_a_large_schema(parser: Parser) -> None:
    known = KnownAnswers(parser)
    assert asyncio.run(known.canonical(avro('"int"'))) == '"int"'
    large = avro(LARGE + '"int"')
    with pytest.raises(Unprepared):
        asyncio.run(known.canonical(large))
    asyncio.run(parser.canonical(large))
    assert asyncio.run(known.canonical(large)) == '"int"'


def test_small_schema_is_registered_while_a_large_one_is_compared(
    registry: MemoryRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.register("large", avro_record("a"))
    processes = registry.service._parser._processes
    do = processes.do

    async def scenario() -> None:
        may_end, is_comparing = asyncio.Event(), asyncio.Event()

        async def held(task: Task) -> tuple[str, ...]:
            if task.question is Question.INCOMPATIBILITIES:
                is_comparing.set()
                await may_end.wait()
            return await do(task)

        monkeypatch.setattr(processes, "do", held)
        text = json.dumps(avro_record("a", optional=[f"f{number}" for number in range(1_000)]))
        large = asyncio.create_task(
            registry.http.request("POST", "/subjects/large/versions", content=json.dumps({"schema": text}))
        )
        await is_comparing.wait()
        small = await registry.http.request("POST", "/subjects/a/versions", content=json.dumps({"schema": '"int"'}))
        assert small.status_code == 200, "it is decided first"
        assert not large.done()
        may_end.set()
        assert (await large).json()["version"] == 2

    registry.runner.run(scenario())


def test_unknown_format_is_refused() -> None:
    with pytest.raises(RegistryError, match="Invalid schema type XML"):
        source_of("XML", "<a/>", {})
