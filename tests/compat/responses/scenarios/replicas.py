"""Elections, reassignments and brokers that are to be forgotten, as far as one broker can show them."""

from tests.compat.responses.api import Api
from tests.compat.responses.placeholders import Topic
from tests.compat.responses.scenario import Ask, NewTopic, Scenario
from tests.compat.responses.scenarios.requests import Body

ELECT, REASSIGN, UNREGISTER = Api.ELECT_LEADERS, Api.ALTER_PARTITION_REASSIGNMENTS, Api.UNREGISTER_BROKER
PREFERRED, UNCLEAN = 0, 1
HERE, ELSEWHERE = 1, 7


def _elections(*topics: tuple[object, list[int]], kind: int = PREFERRED) -> Body:
    named = [{"topic": name, "partitions": numbers} for name, numbers in topics]
    return {"election_type": kind, "topic_partitions": named}


_ELECTIONS = [
    Scenario(name, ELECT, [Ask(ELECT, body)], [NewTopic("a", partitions=2)], shared=True)
    for name, body in {
        "not needed": _elections((Topic("a"), [0])),
        "no topics": _elections(),
        "no partitions": _elections((Topic("a"), [])),
        "an unknown partition": _elections((Topic("a"), [0, 7])),
        "an unknown topic": _elections((Topic("missing"), [0])),
        "an unclean one that is not needed": _elections((Topic("a"), [1]), kind=UNCLEAN),
    }.items()
]


def _reassignment(*partitions: tuple[int, list[int] | None], topic: object = None, **more: object) -> Body:
    rows = [{"partition_index": number, "replicas": replicas} for number, replicas in partitions]
    return {"topics": [{"name": Topic("a") if topic is None else topic, "partitions": rows}], **more}


_REASSIGNMENTS = [
    Scenario(name, REASSIGN, [Ask(REASSIGN, body)], [NewTopic("a", partitions=2)], shared=True)
    for name, body in {
        "to where it is": _reassignment((0, [HERE])),
        "no topics": {"topics": []},
        "to a broker that is not there": _reassignment((0, [ELSEWHERE])),
        "to no broker": _reassignment((0, [])),
        "to one broker twice": _reassignment((0, [HERE, HERE])),
        "to a negative broker": _reassignment((0, [-3])),
        "cancelled, and there is none": _reassignment((0, None)),
        "an unknown partition": _reassignment((7, [HERE])),
        "an unknown topic": _reassignment((0, [HERE]), topic=Topic("missing")),
        "one of two is wrong": _reassignment((0, [HERE]), (1, [ELSEWHERE])),
    }.items()
]

_BROKERS = [
    Scenario("an unknown broker", UNREGISTER, [Ask(UNREGISTER, {"broker_id": ELSEWHERE})]),
    Scenario("a negative broker", UNREGISTER, [Ask(UNREGISTER, {"broker_id": -1})]),
]

SCENARIOS = [*_ELECTIONS, *_REASSIGNMENTS, *_BROKERS]
