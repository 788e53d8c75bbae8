"""The members of a group when one of them reached an epoch, as `__consumer_offsets` has it.

A client learns late that it has been put out, or never: librdkafka sends no heartbeat while it closes, and what it
gives up then is revoked, and not lost, however long its callbacks take. The log knows.

Read by Kafka's layout, and not by the broker's own reader of it.
"""

import struct
from collections import defaultdict

from tests.chaos.history.logs import OFFSETS_TOPIC, Logs, PartitionLog, read_string

Memberships = dict[tuple[str, str, int], frozenset[str]]
"""By group, member and epoch: all members when this one reached it. Of a classic group an epoch is a
generation.
"""

_GROUP_METADATA = 2  # the key of a classic group
_CURRENT_ASSIGNMENT = 8  # the key of a member of a consumer group: its epoch, and what it holds
_GROUP_METADATA_VERSION = 3  # which Kafka writes, too


def stored_memberships(logs: Logs) -> Memberships:
    found: Memberships = {}
    for (topic, _), log in sorted(logs.items()):
        if topic == OFFSETS_TOPIC:
            _read_memberships(log, found)
    return found


def _read_memberships(log: PartitionLog, found: Memberships) -> None:
    living: dict[str, set[str]] = defaultdict(set)  # by consumer group
    for record in log.visible:
        key, value = record.key or b"\xff\xff", record.value
        kind = int.from_bytes(key[:2])
        if kind == _GROUP_METADATA and value is not None:
            group, _ = read_string(key, 2)
            generation, members = _generation(value)
            for member in members:
                found.setdefault((group, member, generation), members)
        elif kind == _CURRENT_ASSIGNMENT:
            group, position = read_string(key, 2)
            member, _ = read_string(key, position)
            if value is None:
                living[group].discard(member)
                continue
            living[group].add(member)
            (epoch,) = struct.unpack_from(">i", value, 2)
            found.setdefault((group, member, epoch), frozenset(living[group]))


def _generation(value: bytes) -> tuple[int, frozenset[str]]:
    """Its number, and its members."""
    assert int.from_bytes(value[:2]) == _GROUP_METADATA_VERSION
    _, position = read_string(value, 2)  # the type of the protocol
    (generation,) = struct.unpack_from(">i", value, position)
    position = _skip_string(value, _skip_string(value, position + 4))  # the protocol, the leader
    (count,) = struct.unpack_from(">i", value, position + 8)  # behind the time of its state
    position += 12
    members = []
    for _ in range(count):
        member, position = read_string(value, position)
        members.append(member)
        for _ in ("group instance id", "client id", "client host"):
            position = _skip_string(value, position)
        position += 8  # the timeouts of rebalances and of its session
        for _ in ("subscription", "assignment"):
            (size,) = struct.unpack_from(">i", value, position)
            position += 4 + size
    return generation, frozenset(members)


def _skip_string(data: bytes, position: int) -> int:
    (size,) = struct.unpack_from(">h", data, position)
    return position + 2 + max(int(size), 0)
