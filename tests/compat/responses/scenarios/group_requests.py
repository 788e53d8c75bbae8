"""Short ways to write requests about groups and transactions."""

import struct

from tests.compat.responses.api import Api
from tests.compat.responses.placeholders import Learnt, Own, Topic, TopicId
from tests.compat.responses.scenario import Ask
from tests.compat.responses.scenarios.requests import Body

JOIN, SYNC, COMMIT = Api.JOIN_GROUP, Api.SYNC_GROUP, Api.OFFSET_COMMIT
GROUP = Own("group")
ID = Own("id")  # a transactional id
MEMBER = Learnt("member")


def subscription(*topics: str) -> bytes:
    """A consumer's subscription: the version, topics, and no data of its own."""
    names = b"".join(struct.pack(">h", len(name)) + name.encode() for name in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)


def assignment() -> bytes:
    """What a leader gives to a consumer: the version, no partitions, and no data of its own."""
    return struct.pack(">hii", 0, 0, -1)


def protocols(*names: str, metadata: bytes = subscription("t")) -> list[Body]:
    return [{"name": name, "metadata": metadata} for name in names]


def join(member_id: object = "", **more: object) -> Body:
    return {
        "group_id": GROUP,
        "session_timeout": 30_000,
        "rebalance_timeout": 30_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": protocols("range"),
        **more,
    }


def joined(**more: object) -> list[Ask]:
    """A member that has joined, whatever the version under test: in generation 1."""
    return [
        Ask(JOIN, join(**more), version=4, learn={"member": "member_id"}),
        Ask(JOIN, join(MEMBER, **more), version=4),
    ]


def sync(member_id: object = MEMBER, generation: int = 1, **more: object) -> Body:
    return {
        "group_id": GROUP,
        "generation_id": generation,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": [{"member_id": member_id, "assignment": assignment()}],
        **more,
    }


def stable(**more: object) -> list[Ask]:
    """A group of one member that has its assignment."""
    return [*joined(**more), Ask(SYNC, sync(), version=5)]


def static_member() -> list[Ask]:
    """A group of one static member, of the instance id "one", that has its assignment."""
    return [
        Ask(JOIN, join(group_instance_id="one"), version=5, learn={"member": "member_id"}),
        Ask(SYNC, sync(group_instance_id="one"), version=5),
    ]


def commit(*partitions: Body, **more: object) -> Body:
    return {
        "group_id": GROUP,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "topics": [{"name": Topic("t"), "topic_id": TopicId("t"), "partitions": list(partitions) or [at(0, 5)]}],
        **more,
    }


def at(partition: int, offset: int, metadata: str | None = "m", leader_epoch: int = -1) -> Body:
    return {
        "partition_index": partition,
        "committed_offset": offset,
        "committed_leader_epoch": leader_epoch,
        "committed_metadata": metadata,
    }


def committed(*partitions: Body, **more: object) -> Ask:
    return Ask(COMMIT, commit(*partitions, **more), version=8)


# -- transactions -----------------------------------------------------------------------------------------------------


def transactional(name: str = "p", *, transactional_id: object = ID, version: int | None = None) -> Ask:
    body = {"transactional_id": transactional_id, "transaction_timeout": 60_000}
    return Ask(
        Api.INIT_PRODUCER_ID,
        body,
        version=4 if version is None else version,
        learn={name: "producer_id", f"{name} epoch": "producer_epoch"},
    )


def producer(name: str = "p") -> Body:
    return {"producer_id": Learnt(name), "producer_epoch": Learnt(f"{name} epoch")}
