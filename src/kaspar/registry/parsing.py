"""Parses schemas and compares them, without stalling the event loop, and remembers what was parsed lately.

A small schema of Avro takes less time than handing it to a thread. All else runs in threads, of which there are few;
more requests wait. Small schemas of the other formats, too, can take long to compare.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Final, TypeVar

from kaspar.registry.errors import RegistryError, invalid_schema
from kaspar.schemas import InvalidSchema, ParsedSchema, SchemaType, format_of

T = TypeVar("T")

_THREADS: Final = 2
_INLINE_CHARACTERS: Final = 8 * 1024
_MAX_CACHED: Final = 1_000
_MAX_CACHED_CHARACTERS: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Source:
    """Everything that parsing a schema needs. `references` are pairs of name and text."""

    type: SchemaType
    text: str
    references: tuple[tuple[str, str], ...] = ()

    @property
    def characters(self) -> int:
        return len(self.text) + sum(len(text) for _, text in self.references)


def source_of(type_name: str, text: str, references: Mapping[str, str]) -> Source:
    """Raises RegistryError if there is no such format."""
    try:
        schema_type = SchemaType(type_name)
    except ValueError:
        raise invalid_schema(f"Invalid schema type {type_name}") from None
    return Source(schema_type, text, tuple(references.items()))


def unparseable(type_name: str, problem: InvalidSchema) -> RegistryError:
    return invalid_schema(f"Invalid schema of type {type_name}, details: {problem}")


class Parser:
    def __init__(self) -> None:
        self._cache = _Cache()
        self._threads: ThreadPoolExecutor | None = None

    async def parsed(self, source: Source) -> ParsedSchema:
        """Raises RegistryError if the text is no schema."""
        known = self._cache.get(source)
        return known if known is not None else await self.run([source], lambda: self.parse(source))

    def parse(self, source: Source) -> ParsedSchema:
        """In the calling thread. Raises RegistryError."""
        known = self._cache.get(source)
        if known is not None:
            return known
        try:
            schema = format_of(source.type).parse(source.text, dict(source.references))
        except InvalidSchema as problem:
            raise unparseable(source.type.value, problem) from None
        self._cache.put(source, schema)
        return schema

    async def run(self, sources: list[Source], work: Callable[[], T]) -> T:
        """Do what takes long with these schemas; in a thread, unless they are small."""
        small = sum(source.characters for source in sources) <= _INLINE_CHARACTERS
        if small and all(source.type is SchemaType.AVRO for source in sources):
            return work()
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_THREADS, "schemas")
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None


class _Cache:
    """What was used least recently goes first. Used by several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._schemas: OrderedDict[Source, ParsedSchema] = OrderedDict()
        self._characters = 0

    def get(self, source: Source) -> ParsedSchema | None:
        with self._lock:
            schema = self._schemas.get(source)
            if schema is not None:
                self._schemas.move_to_end(source)
            return schema

    def put(self, source: Source, schema: ParsedSchema) -> None:
        with self._lock:
            if source not in self._schemas:
                self._characters += source.characters
            self._schemas[source] = schema
            while len(self._schemas) > _MAX_CACHED or self._characters > _MAX_CACHED_CHARACTERS:
                oldest, _ = self._schemas.popitem(last=False)
                self._characters -= oldest.characters
