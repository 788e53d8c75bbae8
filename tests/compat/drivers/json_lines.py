"""The face over a client of another language, which runs in a process of its own and speaks JSON lines (`lines.py`).

Keys, values and header values are base64, or null.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tests.compat.drivers.api import (
    MAX_RECORD_BYTES,
    Ability,
    Acks,
    Codec,
    NothingReceivedError,
    Position,
    Received,
    Record,
    Reset,
)
from tests.compat.drivers.lines import LinesProcess


class JsonLinesDriver:
    name: ClassVar[str]
    cannot: ClassVar[Mapping[Ability, str]] = {}

    def __init__(self, command: Sequence[str]) -> None:
        self._process = LinesProcess(self.name, command)

    def create_topic(self, topic: str, *, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        self._call("create_topic", topic=topic, partitions=partitions, config=dict(config or {}))

    def delete_topic(self, topic: str) -> None:
        self._call("delete_topic", topic=topic)

    def create_partitions(self, topic: str, total: int) -> None:
        self._call("create_partitions", topic=topic, total=total)

    def partition_count(self, topic: str) -> int:
        return int(self._call("partition_count", topic=topic))

    def produce(
        self,
        topic: str,
        records: Sequence[Record],
        *,
        acks: Acks = "all",
        codec: Codec = "none",
        idempotent: bool = False,
    ) -> list[int]:
        encoded = [
            {
                "partition": record.partition,
                "timestamp": record.timestamp_ms,
                "key": _encode(record.key),
                "value": _encode(record.value),
                "headers": [[name, _encode(value)] for name, value in record.headers],
            }
            for record in records
        ]
        options = {"acks": acks, "codec": codec, "idempotent": idempotent, "max_bytes": MAX_RECORD_BYTES}
        offsets = self._call("produce", topic=topic, records=encoded, **options)
        return [-1 if acks == "0" else int(offset) for offset in offsets]

    def consume(
        self, topic: str, *, start: Position, count: int, partition: int = 0, reset: Reset = "earliest"
    ) -> list[Received]:
        options = {"partition": partition, "count": count, "reset": reset, "max_bytes": MAX_RECORD_BYTES}
        records = self._call("consume", topic=topic, start=start.kind, value=start.value, **options)
        if len(records) < count:
            raise NothingReceivedError(len(records), count)
        return [
            Received(
                record["offset"],
                record["timestamp"],
                _decode(record["key"]),
                _decode(record["value"]),
                tuple((name, _decode(value)) for name, value in record["headers"]),
            )
            for record in records
        ]

    def list_offset(self, topic: str, position: Position, *, partition: int = 0) -> int:
        options = {"partition": partition, "position": position.kind, "value": position.value}
        return int(self._call("list_offset", topic=topic, **options))

    def delete_records(self, topic: str, before_offset: int, *, partition: int = 0) -> int:
        return int(self._call("delete_records", topic=topic, partition=partition, before_offset=before_offset))

    def describe_config(self, topic: str) -> dict[str, str | None]:
        return dict(self._call("describe_config", topic=topic))

    def alter_config(self, topic: str, config: Mapping[str, str]) -> None:
        self._call("alter_config", topic=topic, config=dict(config))

    def close(self) -> None:
        self._process.close()

    def _call(self, call: str, **arguments: Any) -> Any:
        return self._process.call(call, **arguments)


def _encode(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def _decode(value: str | None) -> bytes | None:
    return None if value is None else base64.b64decode(value)
