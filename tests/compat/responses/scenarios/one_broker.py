"""Responses for what a single broker without security does not have: ACLs, SASL, reassignments, a quorum."""

from tests.compat.responses.api import Api
from tests.compat.responses.placeholders import Topic
from tests.compat.responses.scenario import Ask, NewTopic, Scenario
from tests.compat.responses.scenarios.requests import Body

DESCRIBE, CREATE, DELETE = Api.DESCRIBE_ACLS, Api.CREATE_ACLS, Api.DELETE_ACLS
REASSIGNMENTS, QUORUM = Api.LIST_PARTITION_REASSIGNMENTS, Api.DESCRIBE_QUORUM
ANY, TOPIC, LITERAL, READ, ALLOW = 1, 2, 3, 3, 3
METADATA_LOG = "__cluster_metadata"


def _filter(**more: object) -> Body:
    return {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
        **more,
    }


def _creation(name: str) -> Body:
    return {
        "resource_type": TOPIC,
        "resource_name": name,
        "resource_pattern_type": LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": READ,
        "permission_type": ALLOW,
    }


_ACLS = [
    Scenario("all of them", DESCRIBE, [Ask(DESCRIBE, _filter())]),
    Scenario("those of a topic", DESCRIBE, [Ask(DESCRIBE, _filter(resource_type_filter=TOPIC))]),
    Scenario("none", CREATE, [Ask(CREATE, {"creations": []})]),
    Scenario("two", CREATE, [Ask(CREATE, {"creations": [_creation("a"), _creation("b")]})]),
    Scenario("without filters", DELETE, [Ask(DELETE, {"filters": []})]),
    Scenario("two filters", DELETE, [Ask(DELETE, {"filters": [_filter(), _filter(resource_name_filter="a")]})]),
]

_SASL = [
    Scenario("plain", Api.SASL_HANDSHAKE, [Ask(Api.SASL_HANDSHAKE, {"mechanism": "PLAIN"})]),
    Scenario("an unknown mechanism", Api.SASL_HANDSHAKE, [Ask(Api.SASL_HANDSHAKE, {"mechanism": "NONSENSE"})]),
    Scenario("again", Api.SASL_HANDSHAKE, [Ask(Api.SASL_HANDSHAKE, {"mechanism": "PLAIN"})] * 2),
    Scenario("credentials", Api.SASL_AUTHENTICATE, [Ask(Api.SASL_AUTHENTICATE, {"auth_bytes": b"\0alice\0secret"})]),
]


def _reassignments(*topics: tuple[object, list[int]]) -> Body:
    return {"topics": [{"name": name, "partition_indexes": indexes} for name, indexes in topics]}


_ALL: Body = {"topics": None}
_REASSIGNMENTS = [
    Scenario(name, REASSIGNMENTS, [Ask(REASSIGNMENTS, body)], [NewTopic("a", partitions=2)], shared=True)
    for name, body in {
        "all": _ALL,
        "no topics": _reassignments(),
        "a topic": _reassignments((Topic("a"), [0, 1])),
        "an unknown partition": _reassignments((Topic("a"), [0, 7, -1])),
        "an unknown topic": _reassignments((Topic("missing"), [0]), (Topic("a"), [0])),
        "a topic name that may not be": _reassignments(("a b", [0]), ("", [0])),
    }.items()
]


def _quorum(*topics: tuple[object, list[int]]) -> Body:
    return {
        "topics": [
            {"topic_name": name, "partitions": [{"partition_index": index} for index in indexes]}
            for name, indexes in topics
        ]
    }


_OF_A_LOG = [
    f"DescribeQuorum.topics.*.partitions.*.{field}"
    for field in ("leader_epoch", "high_watermark", "current_voters.*.log_end_offset")
]
_QUORUM = [
    Scenario(name, QUORUM, [Ask(QUORUM, body)], masks=_OF_A_LOG if name == "the metadata" else ())
    for name, body in {
        "the metadata": _quorum((METADATA_LOG, [0])),
        "no topics": _quorum(),
        "no partitions": _quorum((METADATA_LOG, [])),
        "another partition": _quorum((METADATA_LOG, [1])),
        "two partitions": _quorum((METADATA_LOG, [0, 1])),
        "another topic": _quorum((Topic("missing"), [0])),
        "another topic too": _quorum((METADATA_LOG, [0]), (Topic("missing"), [0])),
    }.items()
]

SCENARIOS = [*_ACLS, *_SASL, *_REASSIGNMENTS, *_QUORUM]
