"""The topic that a command writes to: it must exist, or is created if that is asked for."""

import time
from typing import Final

from kaspar.base.errors import Refused
from kaspar.cli.failures import NotFound
from kaspar.cli.topic_lookup import existing_topics, partitions_of
from kaspar.client.admin.creation import NewTopic, create_topics
from kaspar.client.admin.session import Admin, accepted
from kaspar.client.cluster import LATEST_TIMESTAMP
from kaspar.client.offsets import offsets_at

_PAUSE_S: Final = 0.05


def ensure_topic(admin: Admin, topic: str, *, create: bool, partition: int | None = None) -> None:
    """Brokers may create a topic whose name has a typing error, so it is looked up before anything is sent. Raises
    NotFound, also for a partition that it does not have."""
    try:
        (described,) = existing_topics(admin, [topic])
    except NotFound:
        if not create:
            raise
        accepted(create_topics(admin, [NewTopic(topic)])[topic])
        wait_until_online(admin, topic)
        return
    if partition is not None:
        partitions_of(described, [partition])


def wait_until_online(admin: Admin, topic: str) -> None:
    """Until every partition of a new topic has a leader that serves it: brokers hear of it one after the other, and a
    producer that comes too early sees errors, or with Apache Kafka its first batches out of order."""
    deadline_s = time.monotonic() + admin.api_timeout_s
    while True:
        try:
            (described,) = existing_topics(admin, [topic])
            offsets_at(admin.client, partitions_of(described), LATEST_TIMESTAMP)
        except (NotFound, Refused):
            if time.monotonic() > deadline_s:
                raise
            time.sleep(_PAUSE_S)
        else:
            return
