"""kcat, the command-line client over librdkafka: one process per call.

It reads records from its standard input, split by delimiters. Headers, and whether an empty key or value means null,
are options of the whole process, so records that differ in them go through a process each.
"""

import itertools
import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from typing import ClassVar

from confluent_kafka import KafkaError
from kio.schema.errors import ErrorCode

from tests.compat.drivers.api import (
    CALL_TIMEOUT_SECONDS,
    MAX_RECORD_BYTES,
    Ability,
    Acks,
    ClientError,
    Codec,
    Headers,
    NothingReceivedError,
    Position,
    Received,
    Record,
    Reset,
    error_name,
)
from tests.peers.kcat import kcat_path

_RECORD_END = b"\x1e#\x1e"
_KEY_END = b"\x1f#\x1f"
_FORMAT = r"%o %T %K %S %h\n%k%s"
_DELIVERED = re.compile(rb"delivered to partition \d+ \(offset (-?\d+)\)")
_NO_ADMIN = "it has no admin commands"

# librdkafka prints errors as sentences; these are the sentences of the codes that a broker sends.
_SENTENCES = {KafkaError(code.value).str(): error_name(code.value) for code in ErrorCode if code.value > 0}


class KcatDriver:
    name: ClassVar[str] = "kcat"
    cannot: ClassVar[Mapping[Ability, str]] = {
        Ability.PRODUCE_TIMESTAMP: "it has no option for it",
        Ability.EMPTY_RECORD: "it skips an empty line of its input",
        Ability.BINARY_HEADER: "headers are words of its command line and of its output",
        Ability.CREATE_TOPIC: _NO_ADMIN,
        Ability.DELETE_TOPIC: _NO_ADMIN,
        Ability.CREATE_PARTITIONS: _NO_ADMIN,
        Ability.DELETE_RECORDS: _NO_ADMIN,
        Ability.CONFIGS: _NO_ADMIN,
        Ability.CONFIG_ERRORS: _NO_ADMIN,
        Ability.MAX_TIMESTAMP: "librdkafka asks for offsets by time with a version that does not know it",
    }

    def __init__(self, bootstrap: str) -> None:
        self._base = [kcat_path(), "-b", bootstrap, "-X", f"message.max.bytes={MAX_RECORD_BYTES}"]

    def create_topic(self, topic: str, *, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        raise NotImplementedError(_NO_ADMIN)

    def delete_topic(self, topic: str) -> None:
        raise NotImplementedError(_NO_ADMIN)

    def create_partitions(self, topic: str, total: int) -> None:
        raise NotImplementedError(_NO_ADMIN)

    def partition_count(self, topic: str) -> int:
        described = json.loads(self._run("-L", "-J").stdout)
        return sum(len(each["partitions"]) for each in described["topics"] if each["topic"] == topic)

    def produce(
        self,
        topic: str,
        records: Sequence[Record],
        *,
        acks: Acks = "all",
        codec: Codec = "none",
        idempotent: bool = False,
    ) -> list[int]:
        settings = {
            "acks": acks,
            "compression.codec": codec,
            "enable.idempotence": str(idempotent).lower(),
            "topic.produce.offset.report": "true",
        }
        options = [word for name, value in settings.items() for word in ("-X", f"{name}={value}")]
        offsets: list[int] = []
        for (partition, headers, nulls), group in itertools.groupby(records, key=_options_of):
            lines = [(record.key, record.value or b"") for record in group]
            keyed = any(key is not None for key, _ in lines)
            data = b"".join((((key or b"") + _KEY_END) if keyed else b"") + value + _RECORD_END for key, value in lines)
            done = self._run(
                *("-P", "-t", topic, "-p", str(partition), "-vvv", "-D", _delimiter(_RECORD_END)),
                *(("-K", _delimiter(_KEY_END)) if keyed else ()),
                *(("-Z",) if nulls else ()),
                *(word for header in headers for word in ("-H", _header_word(*header))),
                *options,
                data=data,
            )
            offsets += [int(offset) for offset in _DELIVERED.findall(done.stderr)]
        return [-1] * len(records) if acks == "0" else offsets

    def consume(
        self, topic: str, *, start: Position, count: int, partition: int = 0, reset: Reset = "earliest"
    ) -> list[Received]:
        offset = {
            "earliest": "beginning",
            "latest": "end",
            "offset": str(start.value),
            "timestamp": f"s@{start.value}",
        }[start.kind]
        policy = "error" if reset == "none" else reset
        done = self._run(
            *("-C", "-q", "-t", topic, "-p", str(partition), "-o", offset, "-c", str(count), "-f", _FORMAT),
            *("-X", f"topic.auto.offset.reset={policy}"),
            *("-X", f"receive.message.max.bytes={10 * MAX_RECORD_BYTES}"),
        )
        return _parse(done.stdout)

    def list_offset(self, topic: str, position: Position, *, partition: int = 0) -> int:
        timestamp = {"earliest": -2, "latest": -1}.get(position.kind, position.value)
        done = self._run("-Q", "-t", f"{topic}:{partition}:{timestamp}")
        found = re.search(rb"offset (-?\d+)", done.stdout)
        assert found is not None, done.stdout
        return int(found[1])

    def delete_records(self, topic: str, before_offset: int, *, partition: int = 0) -> int:
        raise NotImplementedError(_NO_ADMIN)

    def describe_config(self, topic: str) -> dict[str, str | None]:
        raise NotImplementedError(_NO_ADMIN)

    def alter_config(self, topic: str, config: Mapping[str, str]) -> None:
        raise NotImplementedError(_NO_ADMIN)

    def close(self) -> None:
        pass

    def _run(self, *arguments: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        try:
            done = subprocess.run(
                [*self._base, *arguments], input=data, capture_output=True, timeout=CALL_TIMEOUT_SECONDS, check=False
            )
        except subprocess.TimeoutExpired as expired:
            raise NothingReceivedError(0, 0) from expired
        if done.returncode != 0:
            raise _client_error(done.stderr.decode(errors="replace"))
        return done


def _options_of(record: Record) -> tuple[int, Headers, bool]:
    """What is given to a process as a whole."""
    return record.partition, record.headers, record.key is None or record.value is None


def _delimiter(delimiter: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in delimiter)


def _header_word(name: str, value: bytes | None) -> str:
    return name if value is None else f"{name}={value.decode()}"


def _parse(output: bytes) -> list[Received]:
    received = []
    position = 0
    while position < len(output):
        line_end = output.index(b"\n", position)
        offset, timestamp, key_size, value_size, headers = output[position:line_end].split(b" ", 4)
        key, position = _sized(output, line_end + 1, int(key_size))
        value, position = _sized(output, position, int(value_size))
        received.append(Received(int(offset), int(timestamp), key, value, _headers(headers.decode())))
    return received


def _sized(output: bytes, position: int, size: int) -> tuple[bytes | None, int]:
    if size < 0:
        return None, position
    return output[position : position + size], position + size


def _headers(text: str) -> Headers:
    pairs = (pair.partition("=") for pair in text.split(",") if pair)
    return tuple((name, None if value == "NULL" else value.encode()) for name, _, value in pairs)


def _client_error(printed: str) -> ClientError:
    return ClientError(named_error(printed) or "KCAT_FAILED", printed)


def named_error(printed: str) -> str | None:
    """Kafka's name of the error in a sentence of librdkafka."""
    return next((name for sentence, name in _SENTENCES.items() if sentence in printed), None)
