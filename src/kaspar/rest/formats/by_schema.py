"""The formats with schemas: Avro, JSON Schema and Protobuf, by the schemas of a registry.

What a schema prepares is kept, so the registry is asked once for each. It is asked in threads, and so are schemas
prepared.
"""

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import msgspec

from kaspar.base.bounded_cache import BoundedCache
from kaspar.base.errors import KasparError
from kaspar.rest.errors import (
    INVALID_SCHEMA,
    JSON_CONVERSION,
    KAFKA_AUTHORIZATION,
    REGISTRY_FAILED,
    SERIALIZATION,
    RestError,
)
from kaspar.rest.formats import EmbeddedFormat, Encoder, Headers, UndecodableRecord
from kaspar.rest.formats.plain import NULL
from kaspar.schemas.schema import InvalidSchema, SchemaType, format_of
from kaspar.serialization.errors import RegistryError, SerializationError
from kaspar.serialization.records import RecordReader, RecordWriter, record_writer
from kaspar.serialization.registry_client import RegisteredSchema, RegistryClient, SchemaText
from kaspar.serialization.subject_names import SubjectNameStrategy

_THREADS: Final = 8
_WRITERS: Final = 1000
_INVALID_SCHEMA_CODE: Final = 42201
"""The registry's code, which has another meaning here."""

_any: Final = msgspec.json.Decoder()
_encode: Final = msgspec.json.Encoder().encode


class SchemaFormats:
    """`key_strategy` and `value_strategy` name the subjects of schemas that come with a request."""

    def __init__(
        self, registry: RegistryClient, *, key_strategy: SubjectNameStrategy, value_strategy: SubjectNameStrategy
    ) -> None:
        self._registry = registry
        self._strategies = {True: key_strategy, False: value_strategy}
        self._reader = RecordReader(registry)
        self._writers = BoundedCache[Hashable, RecordWriter](_WRITERS)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="rest-registry")

    async def writer_by_id(
        self, schema_id: int, topic: str, *, is_key: bool, embedded: EmbeddedFormat | None = None
    ) -> RecordWriter:
        """The schema must be registered under the topic's subject, and be of the format if one is given."""

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

    async def writer_by_text(self, text: str, embedded: EmbeddedFormat, topic: str, *, is_key: bool) -> RecordWriter:
        """The schema is registered under the topic's subject, if it is not yet."""
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

        return await self.writer(("text", schema, topic, is_key), find)

    async def writer(self, key: Hashable, find: Callable[[RegistryClient], RegisteredSchema]) -> RecordWriter:
        """A writer for the schema that `find` returns, which is called in a thread unless the writer is known by the
        key. Raises RestError."""
        if (known := self._writers.get(key)) is not None:
            return known

        def prepare() -> RecordWriter:
            try:
                return record_writer(find(self._registry))
            except SerializationError as problem:
                raise RestError(INVALID_SCHEMA, str(problem)) from None

        writer = await asyncio.get_running_loop().run_in_executor(self._threads, prepare)
        self._writers.put(key, writer)
        return writer

    async def ask(self, question: Callable[[RegistryClient], RegisteredSchema]) -> RegisteredSchema:
        """What the function returns, which is called in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, question, self._registry)

    def strategy(self, *, is_key: bool) -> SubjectNameStrategy:
        """The one that is used where a request names none."""
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
            pass  # it needs the name of the record
        try:
            name = format_of(schema.type).parse(schema.text, self._registry.with_references(schema)).name
            return strategy(topic, is_key, name)
        except InvalidSchema as problem:
            raise RestError(INVALID_SCHEMA, str(problem)) from None
        except SerializationError as problem:
            raise RestError(SERIALIZATION, str(problem)) from None
        except RegistryError as error:
            raise failed(error, "Error when fetching the references of a schema") from None

    def decode(self, data: bytes | None, headers: Headers, *, is_key: bool, kind: SchemaType) -> msgspec.Raw:
        """Blocks at the first record of a schema. Raises UndecodableRecord."""
        if data is None:
            return NULL
        try:
            value, schema = self._reader.decode(data, headers, is_key=is_key)
        except KasparError as problem:
            raise UndecodableRecord(str(problem)) from None
        if schema.schema.type is not kind:
            raise UndecodableRecord(f"its schema {schema.id} is of type {schema.schema.type.value}")
        return msgspec.Raw(_encode(value))

    async def close(self) -> None:
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)
        self._registry.close()


def encoder_of(writer: RecordWriter) -> Encoder:
    """Null needs no schema: it is a record without a key or value."""

    def encode(raw: msgspec.Raw) -> bytes | None:
        if raw == NULL:
            return None
        try:
            return writer.to_bytes(json_value(raw))
        except SerializationError as problem:
            raise RestError(JSON_CONVERSION, str(problem)) from None

    return encode


def json_value(raw: msgspec.Raw) -> Any:
    try:
        return _any.decode(raw)
    except (msgspec.MsgspecError, RecursionError) as problem:
        raise RestError(JSON_CONVERSION, str(problem)) from None


def failed(error: RegistryError, sentence: str) -> RestError:
    """The response to a request for which the registry refused something or could not be reached."""
    if error.status in (401, 403):
        return RestError(KAFKA_AUTHORIZATION, f"{sentence}: {error}")
    if error.status >= 500:
        return RestError(REGISTRY_FAILED, f"{sentence}: {error}")
    return RestError(SERIALIZATION, f"{sentence}: {error}")
