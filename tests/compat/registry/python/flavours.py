"""confluent-kafka-python's registry client and serializers in both of their forms, behind one face.

A test that takes `flavour` runs with the blocking classes and with the asyncio ones:

    flavour.client.register_schema(...)
    serialize = flavour.make(AVRO, "AvroSerializer", flavour.raw_client, schema)
    serialize(value, context)

The asyncio form runs on a loop of its own, which a call enters and leaves.
"""

import asyncio
import importlib
import inspect
from collections.abc import Callable
from typing import Any, Protocol

from confluent_kafka.schema_registry import AsyncSchemaRegistryClient, SchemaRegistryClient

_PACKAGE = "confluent_kafka.schema_registry"
AVRO = f"{_PACKAGE}.avro"
JSON_SCHEMA = f"{_PACKAGE}.json_schema"
PROTOBUF = f"{_PACKAGE}.protobuf"

Serde = Callable[..., Any]


class Flavour(Protocol):
    client: Any
    """Every method blocks."""
    raw_client: Any
    """What serializers are made with."""

    def make(self, module: str, name: str, *arguments: Any, **options: Any) -> Serde:
        """The serializer or deserializer of this name, for example "AvroSerializer"."""

    def close(self) -> None: ...


class Blocking:
    def __init__(self, url: str) -> None:
        self.raw_client: Any = SchemaRegistryClient({"url": url})
        self.client: Any = self.raw_client

    def make(self, module: str, name: str, *arguments: Any, **options: Any) -> Serde:
        serde: Serde = getattr(importlib.import_module(module), name)(*arguments, **options)
        return serde

    def close(self) -> None:
        self.client.close()


class Asynchronous:
    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        self.raw_client: Any = AsyncSchemaRegistryClient({"url": url})
        self.client: Any = _BlockingFace(self.raw_client, self._run)

    def make(self, module: str, name: str, *arguments: Any, **options: Any) -> Serde:
        made = getattr(importlib.import_module(module), f"Async{name}")
        serde = self._run(lambda: made(*arguments, **options))
        return lambda *values: self._run(lambda: serde(*values))

    def _run(self, call: Callable[[], Any]) -> Any:
        async def called() -> Any:
            result = call()
            return await result if inspect.isawaitable(result) else result

        return self._runner.run(called())

    def close(self) -> None:
        self.client.aclose()
        self._runner.close()


class _BlockingFace:
    def __init__(self, client: Any, run: Callable[[Callable[[], Any]], Any]) -> None:
        self._client = client
        self._run = run

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)
        return lambda *arguments, **options: self._run(lambda: method(*arguments, **options))


FLAVOURS: dict[str, Callable[[str], Flavour]] = {"blocking": Blocking, "asyncio": Asynchronous}
