"""The context of all cases: a broker, and registries of both kinds with the same schemas on it."""

import asyncio
import itertools
import json
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import httpx
from confluent_kafka import Producer

from bench.programs import LoadError
from bench.registry.case import Program
from bench.registry.servers import Server
from bench.sides import kaspar
from bench.topics import Topics
from kaspar.registry.records import SchemaValue, schema_record

SCHEMAS: Final = 1_000
_FILLERS: Final = 8
_TYPE: Final = "application/vnd.schemaregistry.v1+json"


@dataclass(frozen=True, slots=True)
class Filled:
    """A registry with schemas, each of which is version 1 of its own subject."""

    server: Server
    ids: tuple[int, ...]


class RegistryBench:
    def __init__(self, folder: Path, scale: float) -> None:
        self.folder = folder
        self.scale = scale
        self._open = ExitStack()
        self._filled: dict[Program, Filled] = {}
        self._runs = itertools.count(1)

    def __enter__(self) -> Self:
        self.broker = self._open.enter_context(kaspar().make(self.folder / "broker"))
        self.topics = Topics(self.broker)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    @property
    def next_run(self) -> int:
        return next(self._runs)

    def server(self, side: Program, topic: str = "_schemas") -> Server:
        """Another instance, which is not started."""
        return Server(side, self.folder, self.broker.bootstrap, topic)

    def filled(self, side: Program) -> Filled:
        """The side's registry. It is started and filled by the first case that needs it, and runs until the end."""
        if side not in self._filled:
            server = self._open.enter_context(self.server(side))
            server.start()
            self._filled[side] = Filled(server, asyncio.run(_fill(server.url)))
        return self._filled[side]

    def filled_topic(self, count: int) -> str:
        """A topic with this number of schemas, in the format of Kaspar's registry."""
        topic = self.topics.create(1, f"_schemas_{count}", {"cleanup.policy": "compact"})
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "linger.ms": 5, "log_level": 0})
        for number in range(1, count + 1):
            value = SchemaValue(subject_of(number), 1, number, schema=schema_of(number))
            key, encoded = schema_record(value)
            producer.produce(topic, encoded, key)
            producer.poll(0)
        if left := producer.flush(60):
            raise LoadError(f"{left} schemas were not written")
        return topic


def subject_of(number: int) -> str:
    return f"subject{number}-value"


def schema_of(number: int) -> str:
    """A record with five fields, about as large as the schema of a typical table."""
    fields = [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": f"amount{number}", "type": "double"},
        {"name": "created", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "note", "type": ["null", "string"], "default": None},
    ]
    schema = {"type": "record", "name": "Order", "namespace": "shop.orders", "fields": fields}
    return json.dumps(schema, separators=(",", ":"))


async def _fill(url: str) -> tuple[int, ...]:
    numbers = iter(range(1, SCHEMAS + 1))
    ids: list[int] = []

    async def fill(client: httpx.AsyncClient) -> None:
        for number in numbers:
            response = await client.post(
                f"{url}/subjects/{subject_of(number)}/versions",
                content=json.dumps({"schema": schema_of(number)}),
                headers={"Content-Type": _TYPE},
            )
            if response.status_code != 200:
                raise LoadError(f"a schema could not be registered: {response.text[:200]}")
            ids.append(response.json()["id"])

    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        await asyncio.gather(*(fill(client) for _ in range(_FILLERS)))
    if len(set(ids)) != SCHEMAS:
        raise LoadError(f"{SCHEMAS} schemas have got {len(set(ids))} ids")
    return tuple(ids)
