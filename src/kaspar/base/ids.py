"""The ids of Kafka's domain, as types, so that an offset is never passed where an epoch belongs."""

import base64
import uuid
from typing import NamedTuple, NewType

Offset = NewType("Offset", int)
LeaderEpoch = NewType("LeaderEpoch", int)
BrokerId = NewType("BrokerId", int)
ProducerId = NewType("ProducerId", int)

NO_OFFSET = Offset(-1)
NO_EPOCH = LeaderEpoch(-1)
NO_TIMESTAMP = -1
NO_PRODUCER_ID = ProducerId(-1)
ZERO_UUID = uuid.UUID(int=0)


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        """The name of the partition's folder on disk, which is also how Kafka's logs and tools write it."""
        return f"{self.topic}-{self.partition}"


class ProducerIdAndEpoch(NamedTuple):
    producer_id: int
    producer_epoch: int


def uuid_to_text(value: uuid.UUID) -> str:
    """A topic id as Kafka prints it: url-safe base64 without padding."""
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


def uuid_from_text(text: str) -> uuid.UUID:
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if len(raw) != 16:
        raise ValueError(f"{text!r} is not an id: it has {len(raw)} bytes, not 16")
    return uuid.UUID(bytes=raw)


def random_uuid() -> uuid.UUID:
    """A random id whose text, as in Kafka, does not start with a dash, so that it can be an argument of a command."""
    while True:
        candidate = uuid.uuid4()
        if candidate.int > 1 and not uuid_to_text(candidate).startswith("-"):
            return candidate
