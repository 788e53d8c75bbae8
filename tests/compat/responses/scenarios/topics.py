"""CreateTopics, DeleteTopics and CreatePartitions."""

from collections.abc import Mapping, Sequence

from tests.compat.responses.api import Api
from tests.compat.responses.placeholders import Topic, TopicId
from tests.compat.responses.scenario import Ask, NewTopic, Scenario, Step
from tests.compat.responses.scenarios.requests import (
    UNKNOWN_ID,
    ZERO_ID,
    Body,
    see_settings,
    see_topic,
    setting,
    until_gone,
    until_topic,
)

CREATE, DELETE, GROW = Api.CREATE_TOPICS, Api.DELETE_TOPICS, Api.CREATE_PARTITIONS
_T = Topic("t")


def _topic(
    name: object = _T,
    partitions: int = 2,
    replicas: int = 1,
    *,
    assigned: Mapping[int, Sequence[int]] | None = None,
    configs: Sequence[Body] = (),
) -> Body:
    assignments = [{"partition_index": index, "broker_ids": list(ids)} for index, ids in (assigned or {}).items()]
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": replicas,
        "assignments": assignments,
        "configs": list(configs),
    }


def _create(
    name: str, *topics: Body, then: Sequence[Step] = (), before: Sequence[NewTopic] = (), **more: object
) -> Scenario:
    body = {"topics": list(topics), "timeout": 10_000, **more}
    order = ["CreateTopics.topics"] if len(topics) > 1 else []
    return Scenario(name, CREATE, [Ask(CREATE, body), *then], before, unordered=order)


def _assigned(assignment: Mapping[int, Sequence[int]], *, partitions: int = -1, replicas: int = -1) -> Body:
    return _topic(partitions=partitions, replicas=replicas, assigned=assignment)


_SEEN = (until_topic(partitions=2), see_topic())
_CREATE = [
    _create("a topic", _topic(), then=_SEEN),
    _create("the broker's number of partitions and replicas", _topic(partitions=-1, replicas=-1), then=_SEEN),
    _create("only checked", _topic(), validate_only=True, then=[see_topic()]),
    _create("two topics", _topic(Topic("a")), _topic(Topic("b"), 3)),
    _create(
        "with settings",
        _topic(configs=[setting("retention.ms", "1234"), setting("cleanup.policy", "compact,delete")]),
        then=[*_SEEN, see_settings("retention.ms", "cleanup.policy", "segment.bytes")],
    ),
    _create("one that exists", _topic(), before=[NewTopic()]),
    _create("one that exists, only checked", _topic(), before=[NewTopic()], validate_only=True),
    _create("one that collides with a dot", _topic(Topic("x_y")), before=[NewTopic("x.y")]),
    _create("the same twice", _topic(), _topic(), then=[see_topic()]),
    _create("a good and a bad one", _topic(Topic("a")), _topic("a b"), _topic(Topic("c"), 0)),
    _create("none"),
    *[
        _create(f"the name {title}", _topic(name))
        for title, name in {
            "empty": "",
            "dot": ".",
            "dots": "..",
            "with a space": "a b",
            "with a slash": "a/b",
            "with an umlaut": "grün",
            "of 250 letters": "n" * 250,
        }.items()
    ],
    *[_create(f"{count} partitions", _topic(partitions=count)) for count in (0, -2, 20_000, 2**31 - 1)],
    *[_create(f"{count} replicas", _topic(replicas=count)) for count in (0, 2, -2, 32_767)],
    _create("20000 partitions only checked", _topic(partitions=20_000), validate_only=True),
    _create("a wrong count of partitions, only checked", _topic(partitions=0), validate_only=True),
    _create("assigned by hand", _assigned({0: [1], 1: [1]}), then=_SEEN),
    _create("assigned by hand in another order", _assigned({1: [1], 0: [1]}), then=_SEEN),
    _create("assigned by hand and counted too", _assigned({0: [1]}, partitions=1)),
    _create("assigned by hand and replicas counted too", _assigned({0: [1]}, replicas=1)),
    _create("assigned to an unknown broker", _assigned({0: [5]})),
    _create("assigned to a known and an unknown broker", _assigned({0: [1, 5]})),
    _create("assigned to the same broker twice", _assigned({0: [1, 1]})),
    _create("assigned to nobody", _assigned({0: []})),
    _create("assigned to a negative broker", _assigned({0: [-1]})),
    _create("assigned with a gap", _assigned({0: [1], 2: [1]})),
    _create("assigned from one", _assigned({1: [1]})),
    _create("assigned with different numbers of replicas", _assigned({0: [1], 1: [1, 2]})),
    _create("an unknown setting", _topic(configs=[setting("no.such.setting", "1")]), then=[see_topic()]),
    _create("a wrong value", _topic(configs=[setting("retention.ms", "soon")])),
    _create("a value out of bounds", _topic(configs=[setting("segment.bytes", "1")])),
    _create("a value out of its list", _topic(configs=[setting("cleanup.policy", "burn")])),
    _create("a null value", _topic(configs=[setting("retention.ms", None)])),
    _create("an empty value", _topic(configs=[setting("retention.ms", "")])),
    _create("a setting twice", _topic(configs=[setting("retention.ms", "1"), setting("retention.ms", "2")])),
    _create(
        "a value with spaces",
        _topic(configs=[setting("retention.ms", " 77 "), setting("cleanup.policy", " delete , compact ")]),
        then=[*_SEEN, see_settings("retention.ms", "cleanup.policy")],
    ),
    _create("a wrong setting, only checked", _topic(configs=[setting("retention.ms", "x")]), validate_only=True),
    _create("min.insync.replicas of zero", _topic(configs=[setting("min.insync.replicas", "0")])),
    _create("tiered storage", _topic(configs=[setting("remote.storage.enable", "true")])),
    _create(
        "a local retention above the whole",
        _topic(configs=[setting("retention.ms", "5"), setting("local.retention.ms", "10")]),
    ),
    _create(
        "a compaction lag the wrong way round",
        _topic(configs=[setting("min.compaction.lag.ms", "10"), setting("max.compaction.lag.ms", "5")]),
    ),
    _create("a zero timeout", _topic(), timeout=0, then=[see_topic()]),
    _create("a negative timeout", _topic(), timeout=-1, then=[see_topic()]),
    _create("a zero timeout and a bad name", _topic("a b"), _topic(), timeout=0, then=[see_topic()]),
    _create("a zero timeout, only checked", _topic(), timeout=0, validate_only=True),
    _create("none with a zero timeout", timeout=0),
    Scenario("a body that is cut", CREATE, [Ask(CREATE, {"topics": [_topic()], "timeout": 1000}, cut=8)]),
]


def _deleted(*names: object, topics: list[Body] | None = None, **more: object) -> Body:
    by_name = [{"name": name, "topic_id": ZERO_ID} for name in names]
    return {"topic_names": list(names), "topics": by_name if topics is None else topics, "timeout": 10_000, **more}


_WITH_IDS = [6]
_BY_ID: Mapping[str, list[Body]] = {
    "by an unknown id": [{"name": None, "topic_id": UNKNOWN_ID}],
    "by id and name": [{"name": _T, "topic_id": TopicId("t")}],
    "by neither": [{"name": None, "topic_id": ZERO_ID}],
    "by the same id twice": [
        {"name": None, "topic_id": TopicId("t")},
        {"name": None, "topic_id": TopicId("t")},
    ],
    "by an unknown id twice": [{"name": None, "topic_id": UNKNOWN_ID}, {"name": None, "topic_id": UNKNOWN_ID}],
    "twice by id and once by name": [
        {"name": None, "topic_id": TopicId("t")},
        {"name": None, "topic_id": TopicId("t")},
        {"name": _T, "topic_id": ZERO_ID},
    ],
    "once by id and once by name": [
        {"name": None, "topic_id": TopicId("t")},
        {"name": _T, "topic_id": ZERO_ID},
    ],
}
_DELETE = [
    Scenario("a topic", DELETE, [Ask(DELETE, _deleted(_T)), until_gone(), Ask(DELETE, _deleted(_T))], [NewTopic()]),
    Scenario(
        "and made again",
        DELETE,
        [
            Ask(DELETE, _deleted(_T)),
            until_gone(),
            Ask(CREATE, {"topics": [_topic()], "timeout": 10_000}, version=7),
            *_SEEN,
        ],
        [NewTopic()],
    ),
    Scenario(
        "two topics",
        DELETE,
        [Ask(DELETE, _deleted(Topic("a"), Topic("b")))],
        [NewTopic("a"), NewTopic("b")],
        unordered=["DeleteTopics.responses"],
    ),
    Scenario("an unknown topic", DELETE, [Ask(DELETE, _deleted(Topic("missing")))]),
    Scenario(
        "a known and an unknown topic",
        DELETE,
        [Ask(DELETE, _deleted(Topic("missing"), _T))],
        [NewTopic()],
        unordered=["DeleteTopics.responses"],
    ),
    Scenario("the same twice", DELETE, [Ask(DELETE, _deleted(_T, _T)), see_topic()], [NewTopic()]),
    Scenario("the same unknown one twice", DELETE, [Ask(DELETE, _deleted(Topic("missing"), Topic("missing")))]),
    Scenario("none", DELETE, [Ask(DELETE, _deleted())]),
    Scenario("a name that may not be", DELETE, [Ask(DELETE, _deleted("a b"))]),
    Scenario("an empty name", DELETE, [Ask(DELETE, _deleted(""))]),
    Scenario("a zero timeout", DELETE, [Ask(DELETE, _deleted(_T, timeout=0)), see_topic()], [NewTopic()]),
    Scenario("an unknown topic and a negative timeout", DELETE, [Ask(DELETE, _deleted(Topic("missing"), timeout=-1))]),
    *[
        Scenario(
            name,
            DELETE,
            [Ask(DELETE, _deleted(topics=topics)), see_topic()],
            [NewTopic(), NewTopic("b")],
            _WITH_IDS,
            unordered=["DeleteTopics.responses"],
        )
        for name, topics in _BY_ID.items()
    ],
    Scenario(
        "by id",
        DELETE,
        [Ask(DELETE, _deleted(topics=[{"name": None, "topic_id": TopicId("t")}])), until_gone()],
        [NewTopic()],
        _WITH_IDS,
    ),
]


def _more(count: int, *assigned: Sequence[int], name: object = _T) -> Body:
    assignments = [{"broker_ids": list(ids)} for ids in assigned] if assigned else None
    return {"name": name, "count": count, "assignments": assignments}


def _grow(name: str, *topics: Body, then: Sequence[Step] | None = None, **more: object) -> Scenario:
    body = {"topics": list(topics), "timeout": 10_000, **more}
    steps: list[Step] = [Ask(GROW, body), *([see_topic()] if then is None else then)]
    return Scenario(
        name, GROW, steps, [NewTopic(partitions=2)], unordered=["CreatePartitions.results"] if len(topics) > 1 else []
    )


_GROWN = (until_topic(partitions=4), see_topic())
_GROW = [
    _grow("to four", _more(4), then=_GROWN),
    _grow("to four, only checked", _more(4), validate_only=True),
    _grow("to as many as there are", _more(2)),
    _grow("to fewer", _more(1)),
    _grow("to zero", _more(0)),
    _grow("to a negative count", _more(-1)),
    _grow("an unknown topic", _more(4, name=Topic("missing"))),
    _grow("a topic name that may not be", _more(4, name="a b")),
    _grow("the same twice", _more(4), _more(5)),
    _grow("a good and a bad one", _more(4), _more(4, name=Topic("missing")), then=_GROWN),
    _grow("none"),
    _grow("assigned by hand", _more(4, [1], [1]), then=_GROWN),
    _grow("too few assigned", _more(4, [1])),
    _grow("too many assigned", _more(3, [1], [1])),
    _grow("assigned to an unknown broker", _more(3, [7])),
    _grow("assigned to the same broker twice", _more(3, [1, 1])),
    _grow("assigned to too many", _more(3, [1, 7])),
    _grow("assigned to nobody", _more(3, [])),
    _grow("a zero timeout", _more(4), timeout=0),
    _grow("a negative timeout, only checked", _more(4), timeout=-1, validate_only=True),
]

SCENARIOS = [*_CREATE, *_DELETE, *_GROW]
