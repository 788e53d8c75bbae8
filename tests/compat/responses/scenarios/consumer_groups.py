"""ConsumerGroupHeartbeat and ConsumerGroupDescribe: groups of the new protocol (KIP-848)."""

from tests.compat.responses.api import Api
from tests.compat.responses.placeholders import Learnt, Own, Topic, TopicId
from tests.compat.responses.scenario import Ask, Eventually, NewTopic, Scenario, Step
from tests.compat.responses.scenarios.group_requests import GROUP, MEMBER, SYNC, committed, joined, stable, sync
from tests.compat.responses.scenarios.requests import UNKNOWN_ID, Body

HEARTBEAT, DESCRIBE = Api.CONSUMER_GROUP_HEARTBEAT, Api.CONSUMER_GROUP_DESCRIBE
ME = Learnt("me")
_T = [NewTopic(partitions=3)]
JOINS, LEAVES, LEAVES_FOR_NOW = 0, -1, -2


def beat(member_id: object = ME, epoch: object = 2, **more: object) -> Body:
    """A heartbeat in which nothing has changed."""
    return {
        "group_id": GROUP,
        "member_id": member_id,
        "member_epoch": epoch,
        "rebalance_timeout": -1,
        "subscribed_topic_names": None,
        "topic_partitions": None,
        **more,
    }


def first(member_id: object = "me", **more: object) -> Body:
    return beat(
        member_id,
        JOINS,
        **{
            "rebalance_timeout": 30_000,
            "subscribed_topic_names": [Topic("t")],
            "topic_partitions": [],
            **more,
        },
    )


def known(partitions: int = 3, topic: str = "t") -> Eventually:
    """The coordinator knows of the scenario's topic: Kafka's hears of it a moment later than clients do."""
    body = first("probe", group_id=Own("probe"), subscribed_topic_names=[Topic(topic)])
    return Eventually(HEARTBEAT, body, "assignment.topic_partitions.0.partitions.length", partitions)


def consumer(group: object = GROUP, partitions: int = 3, **more: object) -> list[Step]:
    """A group of one member that has got its assignment."""
    return [known(partitions), Ask(HEARTBEAT, first(group_id=group, **more), version=1, learn={"me": "member_id"})]


def _owned(*partitions: int, topic: object = None) -> list[Body]:
    return [{"topic_id": topic or TopicId("t"), "partitions": list(partitions)}]


def _wrong(name: str, versions: list[int] | None = None, **body: object) -> Scenario:
    """A first heartbeat that is refused."""
    return Scenario(name, HEARTBEAT, [Ask(HEARTBEAT, first(**body))], _T, versions=versions, given=[known()])


_HEARTBEAT = [
    Scenario(
        "a member comes, lives and leaves",
        HEARTBEAT,
        [
            Ask(HEARTBEAT, first(), learn={"me": "member_id"}),
            Ask(HEARTBEAT, beat(topic_partitions=_owned(0, 1, 2))),
            Ask(HEARTBEAT, beat()),
            Ask(HEARTBEAT, beat(epoch=LEAVES)),
            Ask(HEARTBEAT, beat()),
        ],
        _T,
        given=[known()],
    ),
    Scenario(
        "a member id that the server makes",
        HEARTBEAT,
        [Ask(HEARTBEAT, first(""), learn={"me": "member_id"})],
        _T,
        given=[known()],
    ),
    Scenario(
        "comes twice",
        HEARTBEAT,
        [Ask(HEARTBEAT, first(), learn={"me": "member_id"}), Ask(HEARTBEAT, first())],
        _T,
        given=[known()],
    ),
    Scenario(
        "subscribes to something else",
        HEARTBEAT,
        [
            Ask(HEARTBEAT, beat(subscribed_topic_names=[Topic("other")], topic_partitions=_owned(0, 1, 2))),
            Ask(HEARTBEAT, beat(topic_partitions=_owned(0, 1, 2))),
        ],
        [*_T, NewTopic("other")],
        given=[known(1, "other"), *consumer()],
    ),
    Scenario(
        "subscribes to nothing", HEARTBEAT, [Ask(HEARTBEAT, first(subscribed_topic_names=[]))], _T, given=[known()]
    ),
    Scenario(
        "a topic that is not there",
        HEARTBEAT,
        [Ask(HEARTBEAT, first(subscribed_topic_names=["missing"]))],
        _T,
        given=[known()],
    ),
    Scenario("the range assignor", HEARTBEAT, [Ask(HEARTBEAT, first(server_assignor="range"))], _T, given=[known()]),
    Scenario("a rack", HEARTBEAT, [Ask(HEARTBEAT, first(rack_id="r"))], _T, given=[known()]),
    Scenario(
        "an older epoch, and a later one",
        HEARTBEAT,
        [Ask(HEARTBEAT, beat(epoch=5)), Ask(HEARTBEAT, beat(epoch=1)), Ask(HEARTBEAT, beat(epoch=0))],
        _T,
        given=consumer(),
    ),
    Scenario("a member that nobody knows", HEARTBEAT, [Ask(HEARTBEAT, beat("nobody"))], _T, given=consumer()),
    Scenario("a group that is not there", HEARTBEAT, [Ask(HEARTBEAT, beat("nobody"))], _T),
    Scenario("leaves a group that is not there", HEARTBEAT, [Ask(HEARTBEAT, beat("nobody", LEAVES))], _T),
    Scenario("leaves as nobody", HEARTBEAT, [Ask(HEARTBEAT, beat("nobody", LEAVES))], _T, given=consumer()),
    _wrong("an empty group id", group_id=""),
    _wrong("no rebalance timeout", rebalance_timeout=-1),
    _wrong("a rebalance timeout of zero", rebalance_timeout=0),
    _wrong("no subscription", subscribed_topic_names=None),
    _wrong("no partitions", topic_partitions=None),
    _wrong("partitions at the start", topic_partitions=_owned(0)),
    _wrong("an empty instance id", instance_id=""),
    _wrong("an empty rack", rack_id=""),
    _wrong("an assignor that is not there", server_assignor="sticky"),
    _wrong("an empty assignor", server_assignor=""),
    _wrong("an epoch below minus two", member_epoch=-3),
    Scenario(
        "partitions of a topic that is not there",
        HEARTBEAT,
        [Ask(HEARTBEAT, beat(topic_partitions=_owned(0, topic=UNKNOWN_ID)))],
        _T,
        given=consumer(),
    ),
    Scenario(
        "a static member leaves for now and comes back",
        HEARTBEAT,
        [
            Ask(HEARTBEAT, first("a", instance_id="one"), learn={"me": "member_id"}),
            Ask(HEARTBEAT, beat(epoch=LEAVES_FOR_NOW, instance_id="one")),
            Ask(HEARTBEAT, first("b", instance_id="one")),
            Ask(HEARTBEAT, beat(instance_id="one")),
        ],
        _T,
        given=[known()],
    ),
    Scenario(
        "a static member that is still there",
        HEARTBEAT,
        [Ask(HEARTBEAT, first("b", instance_id="one"))],
        _T,
        given=consumer(instance_id="one"),
    ),
    Scenario(
        "leaves for now without an instance id", HEARTBEAT, [Ask(HEARTBEAT, beat(epoch=-2))], _T, given=consumer()
    ),
    Scenario(
        "a pattern",
        HEARTBEAT,
        [Ask(HEARTBEAT, first(subscribed_topic_names=None, subscribed_topic_regex="nothing-is-called-so.*"))],
        _T,
        given=[known()],
        versions=[1],
    ),
    Scenario(
        "a pattern that is none",
        HEARTBEAT,
        [Ask(HEARTBEAT, first(subscribed_topic_names=None, subscribed_topic_regex="a(b"))],
        _T,
        given=[known()],
        versions=[1],
    ),
    Scenario(
        "an empty pattern",
        HEARTBEAT,
        [Ask(HEARTBEAT, first(subscribed_topic_names=None, subscribed_topic_regex=""))],
        _T,
        given=[known()],
        versions=[1],
    ),
    Scenario(
        "a group with a classic member",
        HEARTBEAT,
        [Ask(HEARTBEAT, first())],
        _T,
        given=[known(), *stable()],
    ),
    Scenario(
        "a group with a classic member whose assignment cannot be read",
        HEARTBEAT,
        [Ask(HEARTBEAT, first())],
        _T,
        given=[
            *joined(),
            Ask(SYNC, sync(assignments=[{"member_id": MEMBER, "assignment": b"\x00\x01mine"}]), version=5),
        ],
    ),
]


def _described(*groups: object, **more: object) -> Ask:
    return Ask(DESCRIBE, {"group_ids": list(groups), **more})


_DESCRIBE = [
    Scenario("one with a member", DESCRIBE, [_described(GROUP)], _T, given=consumer()),
    Scenario(
        "one with a static member",
        DESCRIBE,
        [_described(GROUP, include_authorized_operations=True)],
        _T,
        given=consumer(instance_id="one", rack_id="r"),
    ),
    Scenario(
        "one that everybody has left",
        DESCRIBE,
        [_described(GROUP)],
        _T,
        given=[*consumer(), Ask(HEARTBEAT, beat(epoch=LEAVES), version=1)],
    ),
    Scenario("a classic group", DESCRIBE, [_described(GROUP)], given=stable()),
    Scenario("one that has only offsets", DESCRIBE, [_described(GROUP)], _T, given=[committed()]),
    Scenario("one that is not there", DESCRIBE, [_described(GROUP)]),
    Scenario("an empty group id", DESCRIBE, [_described("")]),
    Scenario("several", DESCRIBE, [_described(Own("x"), GROUP, Own("y"))], _T, given=consumer()),
    Scenario("none", DESCRIBE, [_described()]),
]

SCENARIOS = [*_HEARTBEAT, *_DESCRIBE]
