"""DescribeGroups, ListGroups and DeleteGroups: what is asked about groups from outside."""

from tests.compat.responses.api import Api
from tests.compat.responses.placeholders import Own
from tests.compat.responses.scenario import Ask, Eventually, NewTopic, Scenario
from tests.compat.responses.scenarios.consumer_groups import consumer
from tests.compat.responses.scenarios.group_requests import (
    GROUP,
    MEMBER,
    committed,
    join,
    joined,
    stable,
    static_member,
)

DESCRIBE, LIST, DELETE = Api.DESCRIBE_GROUPS, Api.LIST_GROUPS, Api.DELETE_GROUPS
_LEAVES = Ask(Api.LEAVE_GROUP, {"group_id": GROUP, "member_id": MEMBER}, version=0)
_T = [NewTopic(partitions=3)]


def _described(*groups: object, **more: object) -> Ask:
    return Ask(DESCRIBE, {"groups": list(groups), **more})


_DESCRIBE = [
    Scenario("a stable one", DESCRIBE, [_described(GROUP)], given=stable()),
    Scenario("one without its assignments", DESCRIBE, [_described(GROUP)], given=joined()),
    Scenario("one with a static member", DESCRIBE, [_described(GROUP)], given=static_member()),
    Scenario(
        "one with a pending member",
        DESCRIBE,
        [_described(GROUP)],
        # Kafka gives the member its id before the group's first record is committed.
        given=[
            Ask(Api.JOIN_GROUP, join(), version=4),
            Eventually(DESCRIBE, {"groups": [GROUP]}, "groups.0.group_state", "Empty"),
        ],
    ),
    Scenario("one that everybody has left", DESCRIBE, [_described(GROUP)], given=[*stable(), _LEAVES]),
    Scenario("one that has only offsets", DESCRIBE, [_described(GROUP)], _T, given=[committed()]),
    Scenario("a consumer group", DESCRIBE, [_described(GROUP)], _T, given=consumer()),
    Scenario("with operations", DESCRIBE, [_described(GROUP, include_authorized_operations=True)], given=stable()),
    Scenario("one that is not there", DESCRIBE, [_described(GROUP)]),
    Scenario("an empty group id", DESCRIBE, [_described("")]),
    Scenario("several", DESCRIBE, [_described(Own("x"), GROUP, Own("y"))], given=stable()),
    Scenario("the same twice", DESCRIBE, [_described(GROUP, GROUP)], given=stable()),
    Scenario("none", DESCRIBE, [_described()]),
]


def _listed(*states: str, types: list[str] | None = None) -> Ask:
    return Ask(LIST, {"states_filter": list(states), "types_filter": types or []})


_WITH_STATES, _WITH_TYPES = range(4, LIST.last + 1), [5]
_LIST = [
    Scenario("all", LIST, [_listed()], given=stable()),
    Scenario("of both kinds", LIST, [_listed()], _T, given=[*consumer(group=Own("consumer")), *stable()]),
    Scenario("one that has only offsets", LIST, [_listed()], _T, given=[committed()]),
    Scenario("by state", LIST, [_listed("Stable"), _listed("Empty")], given=stable(), versions=_WITH_STATES),
    Scenario("by state in small letters", LIST, [_listed("stable")], given=stable(), versions=_WITH_STATES),
    Scenario("by several states", LIST, [_listed("Empty", "Stable", "Dead")], given=stable(), versions=_WITH_STATES),
    Scenario("by a state that does not exist", LIST, [_listed("Fine")], given=stable(), versions=_WITH_STATES),
    Scenario(
        "by type", LIST, [_listed(types=["classic"]), _listed(types=["Consumer"])], given=stable(), versions=_WITH_TYPES
    ),
    Scenario("by a type that does not exist", LIST, [_listed(types=["new"])], given=stable(), versions=_WITH_TYPES),
    Scenario("by state and type", LIST, [_listed("Stable", types=["classic"])], given=stable(), versions=_WITH_TYPES),
]


def _deleted(*groups: object) -> Ask:
    return Ask(DELETE, {"groups_names": list(groups)})


_DELETE = [
    Scenario("one that everybody has left", DELETE, [_deleted(GROUP), _deleted(GROUP)], given=[*stable(), _LEAVES]),
    Scenario("one that has only offsets", DELETE, [_deleted(GROUP), _deleted(GROUP)], _T, given=[committed()]),
    Scenario("one with members", DELETE, [_deleted(GROUP)], given=stable()),
    Scenario("a consumer group with members", DELETE, [_deleted(GROUP)], _T, given=consumer()),
    Scenario("one that is not there", DELETE, [_deleted(GROUP)]),
    Scenario("an empty group id", DELETE, [_deleted("")]),
    Scenario(
        "some that can be deleted and some that cannot",
        DELETE,
        [_deleted(Own("nothing"), GROUP, Own("offsets"))],
        _T,
        given=[*stable(), committed(group_id=Own("offsets"))],
    ),
    Scenario("the same twice", DELETE, [_deleted(GROUP, GROUP)], _T, given=[committed()]),
    Scenario("none", DELETE, [_deleted()]),
]

SCENARIOS = [*_DESCRIBE, *_LIST, *_DELETE]
