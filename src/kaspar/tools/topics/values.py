"""Parses the values of the options of kafka-topics. Error messages are Kafka's."""

import base64
import re
from collections.abc import Iterable
from typing import Final
from uuid import UUID

from kaspar.tools.command_line import CommandFailed
from kaspar.tools.java_numbers import parse_int

_LONGEST_ID: Final = 24
"""The length of a topic id as text, including padding."""


def number(text: str | None, option: str) -> int | None:
    if text is None:
        return None
    try:
        return parse_int(text)
    except ValueError:
        raise CommandFailed(f"Cannot parse argument '{text}' of option {option}") from None


def replica_assignment(text: str | None) -> list[list[int]]:
    """The brokers of each partition: 1:2,2:3 is [[1, 2], [2, 3]]. Empty if the controller is to choose them."""
    assignment: list[list[int]] = []
    entries = (text or "").rstrip(",")
    for partition, entry in enumerate(entries.split(",") if entries else ()):
        replicas = [_broker_id(each.strip()) for each in entry.split(":")]
        if duplicates := sorted({each for each in replicas if replicas.count(each) > 1}):
            names = ",".join(map(str, duplicates))
            raise CommandFailed(f"Partition replica lists may not contain duplicate entries: {names}")
        if assignment and len(replicas) != len(assignment[0]):
            raise CommandFailed(f"Partition {partition} has different replication factor: {replicas}")
        assignment.append(replicas)
    return assignment


def _broker_id(text: str) -> int:
    try:
        return parse_int(text)
    except ValueError:
        raise CommandFailed(f'For input string: "{text}"') from None


def new_configs(words: Iterable[str]) -> dict[str, str]:
    """Parse NAME=VALUE words. If a name occurs twice, the last value counts."""
    configs = {}
    for word in words:
        name, *values = re.split(r"\s*=\s*", word)
        if len(values) != 1 or not values[0]:
            raise CommandFailed(
                'requirement failed: Invalid topic config: all configs to be added must be in the format "key=val".'
            )
        configs[name.strip()] = values[0].strip()
    return configs


def topic_id(text: str) -> UUID:
    if len(text) > _LONGEST_ID:
        raise CommandFailed(
            f"Input string with prefix `{text[:_LONGEST_ID]}` is too long to be decoded as a base64 UUID"
        )
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError as problem:
        raise CommandFailed(f"Input string `{text}` is not a base64 UUID: {problem}") from None
    if len(raw) != 16:
        raise CommandFailed(
            f"Input string `{text}` decoded as {len(raw)} bytes, which is not equal to the expected 16 bytes of a "
            "base64-encoded UUID"
        )
    return UUID(bytes=raw)
