"""The error codes that are counted of a response are those that Kafka's own class of it counts."""

import dataclasses
import itertools
import random
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kaspar.protocol import codec
from kaspar.protocol.error_counts import error_counter
from kaspar.protocol.schema import Message, VersionRange
from tests.peers.downloads import require_tool
from tests.peers.kafka import LIGHT_JVM, TOOL_TIMEOUT_SECONDS, classpath, kafka_jars
from tests.peers.missing import unless_missing
from tests.unit.protocol.oracle import Oracle, all_messages

PROGRAM = Path(__file__).parent / "drivers" / "java" / "ErrorCounts.java"
EACH = 2
VALID_INT8 = 3  # a resource type, pattern type, operation and permission that Kafka knows


class Sample(NamedTuple):
    message_class: type[Message]
    version: int
    body: bytes

    def counted(self) -> dict[int, int]:
        counts: defaultdict[int, int] = defaultdict(int)
        count = error_counter(self.message_class, self.version)
        if count is not None:
            count(codec.read(self.message_class, self.version, self.body, 0)[0], counts)
        return dict(counts)


def test_error_codes_are_counted_as_kafka_counts_them() -> None:
    unless_missing(kafka_jars)
    samples = list(_samples())
    different = [
        f"{sample.message_class.__name__} v{sample.version}: {ours} is counted, by Kafka {kafkas}"
        for sample, kafkas in zip(samples, _counted_by_kafka(samples), strict=True)
        if (ours := sample.counted()) != kafkas
    ]
    if different:
        pytest.fail("\n".join(different), pytrace=False)


def _samples() -> Iterator[Sample]:
    """Of every response at every version, with error codes that Kafka has."""
    randomness = random.Random("error codes")
    for message_class, version in all_messages():
        if not message_class.__name__.endswith("Response") or version not in _versions_with_errors(message_class):
            continue
        for _ in range(EACH):
            message = _distinct(Oracle(message_class, version).random_message(randomness), itertools.count())
            yield Sample(message_class, version, codec.write(message, version))


def _versions_with_errors(message_class: type[Message]) -> set[int]:
    """The first and the last, and those with which a field of the response comes or goes."""
    first, last = VersionRange.parse(message_class.SCHEMA.versions)
    changes = {bound for field in message_class.SCHEMA.fields for bound in VersionRange.parse(field.versions)}
    return {first, last, *changes}


def _distinct(value: Any, numbers: Iterator[int]) -> Any:
    """The same with names and partitions that differ, since Kafka puts some items into a map by them."""
    if isinstance(value, tuple):
        return tuple(_distinct(each, numbers) for each in value)
    if not isinstance(value, Message):
        return value
    changed: dict[str, Any] = {}
    for field in value.SCHEMA.fields:
        old = getattr(value, field.name)
        if isinstance(old, str):
            changed[field.name] = f"name-{next(numbers)}"
        elif field.name == "partition_index":
            changed[field.name] = next(numbers)
        elif field.type == "int8":
            changed[field.name] = VALID_INT8
        else:
            changed[field.name] = _distinct(old, numbers)
    return dataclasses.replace(value, **changed)  # type: ignore[type-var]


def _counted_by_kafka(samples: list[Sample]) -> Iterator[dict[int, int]]:
    lines = "".join(
        f"{sample.message_class.SCHEMA.api_key} {sample.version} {sample.body.hex()}\n" for sample in samples
    )
    done = subprocess.run(
        [require_tool("java"), "-Xmx256m", *LIGHT_JVM, "-cp", classpath(), str(PROGRAM)],
        input=lines,
        capture_output=True,
        text=True,
        check=False,
        timeout=TOOL_TIMEOUT_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        yield {int(code): int(count) for code, _, count in (word.partition("=") for word in line.split())}
