"""The face over a client of another language: a long-lived process that takes one JSON command a line and answers each.

    {"call": "produce", "topic": ..., ...}    ->    {"result": ...}    or    {"error": "INVALID_CONFIG", "message": ...}

Keys, values and header values are base64, or null.
"""

import base64
import json
import queue
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tests.compat.drivers.api import (
    CALL_TIMEOUT_SECONDS,
    MAX_RECORD_BYTES,
    Ability,
    Acks,
    ClientError,
    Codec,
    NothingReceivedError,
    Position,
    Received,
    Record,
    Reset,
)

_SLACK_SECONDS = 10.0  # beyond what a call may take, before the process itself is held to be stuck


class JsonLinesDriver:
    name: ClassVar[str]
    cannot: ClassVar[Mapping[Ability, str]] = {}

    def __init__(self, command: Sequence[str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._process = subprocess.Popen(
            list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        self._answers: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, name=f"{self.name}-answers", daemon=True)
        self._reader.start()

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
        assert self._process.stdin is not None
        self._process.stdin.close()  # the end of its input ends the process
        try:
            self._process.wait(CALL_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        self._errors.close()

    def _call(self, call: str, **arguments: Any) -> Any:
        assert self._process.stdin is not None
        command = {"call": call, "timeout_ms": int(CALL_TIMEOUT_SECONDS * 1000), **arguments}
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        try:
            answer = json.loads(self._answers.get(timeout=CALL_TIMEOUT_SECONDS + _SLACK_SECONDS) or "{}")
        except queue.Empty:
            self._process.kill()
            raise ClientError("DRIVER_STUCK", f"{self.name} did not answer {call}: {self._printed()}") from None
        if not answer:
            raise ClientError("DRIVER_ENDED", f"{self.name} ended at {call}: {self._printed()}")
        if "error" in answer:
            raise ClientError(answer["error"], answer.get("message", ""))
        return answer["result"]

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._answers.put(line)
        self._answers.put("")

    def _printed(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")[-3000:]


def _encode(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def _decode(value: str | None) -> bytes | None:
    return None if value is None else base64.b64decode(value)
