"""The formats with schemas, which are in a registry: Avro, JSON Schema and Protobuf.

Prepared schemas are cached, so each is requested from the registry once. Threads send the requests and prepare schemas.
Values that take more than a few milliseconds are encoded and decoded in processes.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

import msgspec

from kaspar.base.bounded_cache import BoundedCache
from kaspar.base.errors import KasparError
from kaspar.rest.errors import (
    INVALID_SCHEMA,
    JSON_CONVERSION,
    KAFKA_AUTHORIZATION,
    REGISTRY_FAILED,
    SERIALIZATION,
    TOO_MANY_REQUESTS,
    RestError,
)
from kaspar.rest.formats import EmbeddedFormat, Headers, UndecodableRecord
from kaspar.rest.formats.plain import NULL
from kaspar.schemas.schema import InvalidSchema, SchemaType, format_of
from kaspar.serialization.errors import InvalidValue, RegistryError, SerializationError, TooCostly
from kaspar.serialization.records import RecordReader, RecordWriter, record_writer
from kaspar.serialization.registry_client import RegisteredSchema, RegistryClient, SchemaText
from kaspar.serialization.subject_names import SubjectNameStrategy
from kaspar.serialization.value_processes import PROCESSES, ValueProcesses

_THREADS: Final = 8
_DECODING_THREADS: Final = 4
_MAX_WAITING: Final = 100
"""The maximum number of values that wait for a process."""
REQUEST_S: Final = 10.0
"""The maximum time that processes spend on one request, or on one group of records of a stream."""
_WRITERS: Final = 1000
_INVALID_SCHEMA_CODE: Final = 42201
"""The registry's code; in the REST API the same number has another meaning."""

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Registration:
    """What the caller may register for the topic that it writes to. The registry itself sees only the proxy's
    identity."""

    check_writable: Callable[[], Awaitable[None]]
    """Raises RestError unless brokers allow the caller to write to the topic."""
    any_subject: bool
    """Whether the request may name the subject."""


class SchemaFormats:
    """`key_strategy` and `value_strategy` give the subjects of schemas that a request contains."""

    def __init__(
        self, registry: RegistryClient, *, key_strategy: SubjectNameStrategy, value_strategy: SubjectNameStrategy
    ) -> None:
        self._registry = registry
        self._strategies = {True: key_strategy, False: value_strategy}
        self._processes = ValueProcesses()
        self._reader = RecordReader(registry, self._processes)
        self._writers = BoundedCache[Hashable, RecordWriter](_WRITERS)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="rest-registry")
        self._encoding = ThreadPoolExecutor(PROCESSES, thread_name_prefix="rest-encoding")
        self._decoding = ThreadPoolExecutor(_DECODING_THREADS, thread_name_prefix="rest-decoding")
        self._waiting = 0

    async def writer_by_id(
        self, schema_id: int, topic: str, *, is_key: bool, embedded: EmbeddedFormat | None = None
    ) -> RecordWriter:
        """The schema must be registered under the topic's subject, and have the type of the format if one is given."""

        def find(registry: RegistryClient) -> RegisteredSchema:
            try:
                found = registry.schema_by_id(schema_id)
            except RegistryError as error:
                raise failed(error, f"Error when fetching schema by id. schemaId = {schema_id}") from None
            if embedded is not None and found.schema.type is not embedded.schema_type:
                raise RestError(INVALID_SCHEMA, f"schema {schema_id} is of type {found.schema.type.value}.")
            subject = self.subject_of(topic, found.schema, is_key=is_key)
            try:
                registry.lookup(subject, found.schema)
            except RegistryError as error:
                sentence = f"Error when fetching schema version. subject = {subject}, schema = {found.schema.text}"
                raise failed(error, sentence) from None
            return found

        return await self.writer(("id", schema_id, topic, is_key, embedded), find)

    async def writer_by_text(
        self, text: str, embedded: EmbeddedFormat, topic: str, registration: Registration, *, is_key: bool
    ) -> RecordWriter:
        """Registers the schema under the topic's subject unless it is registered already."""
        assert embedded.schema_type is not None
        schema = SchemaText(embedded.schema_type, text)

        def find(registry: RegistryClient) -> RegisteredSchema:
            subject = self.subject_of(topic, schema, is_key=is_key)
            try:
                return registry.register(subject, schema)
            except RegistryError as error:
                if error.error_code == _INVALID_SCHEMA_CODE:
                    raise RestError(INVALID_SCHEMA, str(error)) from None
                sentence = (
                    f"Error when registering schema. format = {embedded.name}, subject = {subject}, schema = {text}"
                )
                raise RestError(REGISTRY_FAILED, f"{sentence}: {error}") from None

        return await self.writer(("text", schema, topic, is_key), find, registration)

    async def writer(
        self,
        key: Hashable,
        find: Callable[[RegistryClient], RegisteredSchema],
        registration: Registration | None = None,
    ) -> RecordWriter:
        """The cached writer with this key, or a new one for the schema that `find` returns, which is called in a
        thread. If `find` may register schemas, a registration is required. Raises RestError."""
        if (known := self._writers.get(key)) is not None:
            return known
        if registration is not None:
            await registration.check_writable()

        def prepare() -> RecordWriter:
            try:
                return record_writer(find(self._registry), processes=self._processes)
            except SerializationError as problem:
                raise RestError(INVALID_SCHEMA, str(problem)) from None

        writer = await asyncio.get_running_loop().run_in_executor(self._threads, prepare)
        self._writers.put(key, writer)
        return writer

    async def ask(self, question: Callable[[RegistryClient], RegisteredSchema]) -> RegisteredSchema:
        """Call the function in a thread and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, question, self._registry)

    def strategy(self, *, is_key: bool) -> SubjectNameStrategy:
        """The strategy for requests that name none."""
        return self._strategies[is_key]

    def subject_of(
        self, topic: str, schema: SchemaText, *, is_key: bool, strategy: SubjectNameStrategy | None = None
    ) -> str:
        """Raises RestError."""
        name = None
        strategy = strategy or self._strategies[is_key]
        try:
            return strategy(topic, is_key, None)
        except SerializationError:
            pass  # the strategy needs the record's name
        try:
            name = format_of(schema.type).parse(schema.text, self._registry.with_references(schema)).name
            return strategy(topic, is_key, name)
        except InvalidSchema as problem:
            raise RestError(INVALID_SCHEMA, str(problem)) from None
        except SerializationError as problem:
            raise RestError(SERIALIZATION, str(problem)) from None
        except RegistryError as error:
            raise failed(error, "Error when fetching the references of a schema") from None

    def encoding(self) -> "Encoding":
        return Encoding(self._in_process)

    async def _in_process(self, writer: RecordWriter, data: bytes) -> "_Timed":
        """Raises RestError if too many values are waiting already."""
        if self._waiting >= _MAX_WAITING:
            raise RestError(TOO_MANY_REQUESTS, "Too many values wait to be encoded.")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._encoding, _timed, writer, data)
        finally:
            self._waiting -= 1

    async def decoding(self, work: Callable[[], _Result]) -> _Result:
        """Call the function in a thread and return its result. It may call `decode`."""
        return await asyncio.get_running_loop().run_in_executor(self._decoding, work)

    def decode(self, data: bytes | None, headers: Headers, *, is_key: bool, kind: SchemaType) -> msgspec.Raw:
        """Blocks at the first record of a schema, and for expensive values. Raises UndecodableRecord."""
        if data is None:
            return NULL
        try:
            json, schema = self._reader.decode_to_json(data, headers, is_key=is_key)
        except KasparError as problem:
            raise UndecodableRecord(str(problem)) from None
        if schema.schema.type is not kind:
            raise UndecodableRecord(f"its schema {schema.id} is of type {schema.schema.type.value}")
        return msgspec.Raw(json)

    async def close(self) -> None:
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._processes.close()
        for threads in (self._encoding, self._decoding, self._threads):
            threads.shutdown(cancel_futures=True)
        self._registry.close()


class _Timed(NamedTuple):
    result: bytes | InvalidValue
    seconds: float


def _timed(writer: RecordWriter, data: bytes) -> _Timed:
    began = time.monotonic()
    result: bytes | InvalidValue
    try:
        result = writer.slowly(data)
    except InvalidValue as problem:
        result = problem
    return _Timed(result, time.monotonic() - began)


class Encoding:
    """Encodes the values of one request, and limits the total time that processes spend on them."""

    def __init__(self, in_process: Callable[[RecordWriter, bytes], Awaitable[_Timed]]) -> None:
        self._in_process = in_process
        self._left_s = REQUEST_S

    async def encode(self, writer: RecordWriter, raw: msgspec.Raw) -> bytes | None:
        """Null is a record without a key or value, and needs no schema. Raises InvalidValue and RestError."""
        if raw == NULL:
            return None
        data = bytes(raw)
        try:
            return writer.quickly(data)
        except TooCostly:
            return await self._slowly(writer, data)

    async def _slowly(self, writer: RecordWriter, data: bytes) -> bytes:
        if self._left_s <= 0:
            raise InvalidValue("The values of the request take too long to encode.")
        result, seconds = await self._in_process(writer, data)
        self._left_s -= seconds
        if isinstance(result, InvalidValue):
            raise result
        return result


class SchemaEncoder:
    """An encoder for the keys or values of a request."""

    def __init__(self, writer: RecordWriter, encoding: Encoding) -> None:
        self._writer = writer
        self._encoding = encoding

    def __call__(self, raw: msgspec.Raw) -> bytes | None:
        """Raises RestError, and TooCostly if `slowly` must be used."""
        if raw == NULL:
            return None
        try:
            return self._writer.quickly(bytes(raw))
        except SerializationError as problem:
            raise RestError(JSON_CONVERSION, str(problem)) from None

    async def slowly(self, raw: msgspec.Raw) -> bytes | None:
        """Raises RestError."""
        try:
            return await self._encoding.encode(self._writer, raw)
        except SerializationError as problem:
            raise RestError(JSON_CONVERSION, str(problem)) from None


def failed(error: RegistryError, sentence: str) -> RestError:
    """The error for a request for which the registry returned an error or could not be reached."""
    if error.status in (401, 403):
        return RestError(KAFKA_AUTHORIZATION, f"{sentence}: {error}")
    if error.status >= 500:
        return RestError(REGISTRY_FAILED, f"{sentence}: {error}")
    return RestError(SERIALIZATION, f"{sentence}: {error}")
