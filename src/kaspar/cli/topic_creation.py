"""The topic that a command writes to: it must exist, or is created if that is asked for."""

from kaspar.base.errors import Refused
from kaspar.cli.failures import NotFound
from kaspar.cli.topic_lookup import existing_topics, partitions_of
from kaspar.client.admin.creation import NewTopic, create_topics
from kaspar.client.admin.session import Admin


def ensure_topic(admin: Admin, topic: str, *, create: bool, partition: int | None = None) -> None:
    """Brokers may create a topic whose name has a typing error, so it is looked up before anything is sent. Raises
    NotFound, also for a partition that it does not have."""
    try:
        (described,) = existing_topics(admin, [topic])
    except NotFound:
        if not create:
            raise
        result = create_topics(admin, [NewTopic(topic)])[topic]
        if isinstance(result, Refused):
            raise result from None
        return
    if partition is not None:
        partitions_of(described, [partition])
