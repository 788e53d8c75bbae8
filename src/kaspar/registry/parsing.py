"""Parses and compares schemas without stalling the event loop, and caches the outcomes.

A small Avro schema takes less time than passing it to a thread. Other small schemas are processed in threads, of which
there are few, and larger ones in processes: a thread that works on Python objects slows down the event loop. Further
requests wait. Even small JSON schemas can take long to compare, because every part of one is compared with every part
of the other.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import msgspec

from kaspar.base.bounded_cache import BoundedCache
from kaspar.registry.entities import SchemaTags
from kaspar.registry.errors import RegistryError, invalid_schema
from kaspar.registry.schema_processes import SchemaProcesses, TooComplex
from kaspar.registry.schema_work import Question, SchemaWork, Source, Task, Unparseable
from kaspar.schemas import InvalidSchema, SchemaType
from kaspar.schemas.levels import CompatibilityLevel

_THREADS: Final = 2
_INLINE_CHARACTERS: Final = 8 * 1024
_THREAD_CHARACTERS: Final = 16 * 1024
_COMPARED_IN_THREAD_CHARACTERS: Final = 4 * 1024
"""For JSON schemas."""
_BATCH_CHARACTERS: Final = 512 * 1024
"""The maximum total size of earlier versions that one task compares."""
_CHARACTERS_PER_REFERENCE: Final = 100
"""Resolving a reference takes as long as this many characters of text."""
_MAX_REMEMBERED: Final = 10_000
_MAX_REMEMBERED_CHARACTERS: Final = 16 * 1024 * 1024

_Outcome = tuple[str, ...] | RegistryError

__all__ = ["KnownAnswers", "Parser", "SchemaAnswers", "Source", "Unprepared", "source_of", "unparseable"]


def source_of(type_name: str, text: str, references: Mapping[str, str]) -> Source:
    """Raises RegistryError if the format does not exist."""
    try:
        schema_type = SchemaType(type_name)
    except ValueError:
        raise invalid_schema(f"Invalid schema type {type_name}") from None
    return Source(schema_type, text, tuple(references.items()))


def unparseable(type_name: str, problem: InvalidSchema | str) -> RegistryError:
    return invalid_schema(f"Invalid schema of type {type_name}, details: {problem}")


class SchemaAnswers(ABC):
    """Operations on schemas. All raise RegistryError if a text is not a schema or is too complex."""

    @abstractmethod
    async def do(self, task: Task) -> tuple[str, ...]: ...

    async def canonical(self, source: Source) -> str:
        return (await self.do(Task(Question.CANONICAL, source)))[0]

    async def normalized(self, source: Source) -> str:
        return (await self.do(Task(Question.NORMALIZED, source)))[0]

    async def formatted(self, source: Source, form: str) -> str:
        return (await self.do(Task(Question.FORMATTED, source, form)))[0]

    async def fields(self, source: Source) -> tuple[str, ...]:
        """The names of the top-level fields."""
        return await self.do(Task(Question.FIELDS, source))

    async def tags(self, source: Source) -> list[SchemaTags]:
        """The tags in the schema's text."""
        return msgspec.json.decode((await self.do(Task(Question.TAGS, source)))[0], type=list[SchemaTags])

    async def tagged(self, source: Source, added: tuple[SchemaTags, ...], removed: tuple[SchemaTags, ...]) -> str:
        """The canonical text with changed tags."""
        task = Task(Question.TAGGED, source, tags_to_add=added, tags_to_remove=removed)
        return (await self.do(task))[0]

    async def incompatibilities(
        self,
        source: Source,
        level: CompatibilityLevel,
        earlier: Iterable[tuple[int, Source]],
        *,
        validate_fields: bool,
        field_errors: Sequence[str],
    ) -> list[str]:
        """See kaspar.schemas.levels.check. `earlier` are versions and schemas, newest first. They are processed in
        batches, and the event loop runs other tasks in between."""
        refused: tuple[tuple[int, Source], ...] = ()
        for place, batch in enumerate(_batches(earlier)):
            if place:
                await asyncio.sleep(0)
            task = Task(Question.INCOMPATIBILITIES, source, "", level, batch, validate_fields)
            messages = await self.do(task)
            if messages and not field_errors:
                return list(messages)
            if messages:
                refused = batch
                break
        if not field_errors:
            return []
        task = Task(Question.INCOMPATIBILITIES, source, "", level, refused, validate_fields, tuple(field_errors))
        return list(await self.do(task))


def _batches(earlier: Iterable[tuple[int, Source]]) -> Iterator[tuple[tuple[int, Source], ...]]:
    batch: list[tuple[int, Source]] = []
    size = 0
    for version, source in earlier:
        weight = source.characters + _CHARACTERS_PER_REFERENCE * len(source.references)
        if batch and size + weight > _BATCH_CHARACTERS:
            yield tuple(batch)
            batch, size = [], 0
        batch.append((version, source))
        size += weight
    if batch:
        yield tuple(batch)


class Parser(SchemaAnswers):
    def __init__(self) -> None:
        self._work = SchemaWork()
        self._processes = SchemaProcesses()
        self._threads: ThreadPoolExecutor | None = None
        self._outcomes: BoundedCache[Task, _Outcome] = BoundedCache(
            _MAX_REMEMBERED, max_weight=_MAX_REMEMBERED_CHARACTERS, weight_of=_characters
        )
        self._under_way: dict[Task, asyncio.Task[_Outcome]] = {}

    def known(self, task: Task) -> _Outcome | None:
        """The outcome of a small task, which is done at once, or of one that is cached. None for others."""
        return self._done(task) if _is_small(task) else self._outcomes.get(task)

    async def do(self, task: Task) -> tuple[str, ...]:
        outcome = self.known(task)
        if outcome is None:
            outcome = await asyncio.shield(self._doing(task))
        return _texts(outcome)

    def _doing(self, task: Task) -> asyncio.Task[_Outcome]:
        """The running task, which is shared, because many clients may start with the same schema at once."""
        doing = self._under_way.get(task)
        if doing is None:
            doing = self._under_way[task] = asyncio.create_task(self._do_elsewhere(task))
            doing.add_done_callback(lambda _: self._under_way.pop(task, None))
        return doing

    async def _do_elsewhere(self, task: Task) -> _Outcome:
        outcome: _Outcome
        if _fits_thread(task):
            if self._threads is None:
                self._threads = ThreadPoolExecutor(_THREADS, "schemas")
            outcome = await asyncio.get_running_loop().run_in_executor(self._threads, self._done, task)
        else:
            outcome = await self._done_by_process(task)
        self._outcomes.put(task, outcome)
        return outcome

    def _done(self, task: Task) -> _Outcome:
        try:
            return self._work.do(task)
        except Unparseable as problem:
            return unparseable(problem.refusal.type.value, problem.refusal.reason)

    async def _done_by_process(self, task: Task) -> _Outcome:
        try:
            return await self._processes.do(task)
        except Unparseable as problem:
            return unparseable(problem.refusal.type.value, problem.refusal.reason)
        except TooComplex:
            return unparseable(task.schema.type.value, "The schema is too complex")

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None
        self._processes.close()


class Unprepared(Exception):
    """A decision needs the outcome of a task that is not small and not cached."""


class KnownAnswers(SchemaAnswers):
    """Uses only outcomes that a parser has without waiting. This is for decisions, since other writes wait for them.
    Raises Unprepared."""

    def __init__(self, parser: Parser) -> None:
        self._parser = parser

    async def do(self, task: Task) -> tuple[str, ...]:
        outcome = self._parser.known(task)
        if outcome is None:
            raise Unprepared
        return _texts(outcome)


def _texts(outcome: _Outcome) -> tuple[str, ...]:
    if isinstance(outcome, RegistryError):
        raise RegistryError(outcome.code, outcome.message)
    return outcome


def _is_small(task: Task) -> bool:
    return task.types == {SchemaType.AVRO} and task.characters <= _INLINE_CHARACTERS


def _fits_thread(task: Task) -> bool:
    compares_json = task.question is Question.INCOMPATIBILITIES and SchemaType.JSON in task.types
    return task.characters <= (_COMPARED_IN_THREAD_CHARACTERS if compares_json else _THREAD_CHARACTERS)


def _characters(task: Task, outcome: _Outcome) -> int:
    """The weight of a cache entry. Earlier versions do not count, because their texts are shared with the state."""
    texts = (outcome.message,) if isinstance(outcome, RegistryError) else outcome
    return task.schema.characters + sum(map(len, texts))
