"""Checks that the topic that a command writes to exists, or creates it on request."""

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
    """Look up the topic, and create it with `create`. This happens before records are sent, because brokers might
    create a topic automatically for a mistyped name. Raises NotFound, also for a partition that does not exist.
    """
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
    """Wait until every partition of a new topic has a leader that serves it. Brokers learn of the topic one after the
    other, and a producer that starts too early gets errors, or with Apache Kafka its first batches out of order."""
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
