"""The ACL APIs with an authorizer: what is created, found and deleted, and what is refused."""

from tests.compat.responses.api import Api
from tests.compat.responses.authorization.acls import (
    ALL,
    ANY,
    CLUSTER,
    DENY,
    DESCRIBE,
    GROUP,
    LITERAL,
    PREFIXED,
    READ,
    TOPIC,
    WRITE,
    creation,
    selection,
)
from tests.compat.responses.placeholders import Own, Topic
from tests.compat.responses.scenario import Ask, Eventually, Scenario, Step
from tests.compat.responses.scenarios.requests import Body

CREATE, DELETE, FIND = Api.CREATE_ACLS, Api.DELETE_ACLS, Api.DESCRIBE_ACLS
ME = Own("me")  # a host of its own, so that scenarios do not see each other's
MATCH = 2
UNORDERED = ["DescribeAcls.resources", "DescribeAcls.resources.*.acls", "DeleteAcls.filter_results.*.matching_acls"]


def acl(kind: int = TOPIC, name: object = Topic("t"), operation: int = READ, **more: object) -> Body:
    return creation(kind, name, operation, **{"principal": "User:alice", "host": ME, **more})  # type: ignore[arg-type]


def created(*acls: Body, version: int | None = None) -> Ask:
    return Ask(CREATE, {"creations": list(acls)}, version=version)


def of_mine(**fields: object) -> Body:
    return selection(**{"host_filter": ME, **fields})


def until(count: int) -> Eventually:
    """So many resources have ACLs of mine."""
    return Eventually(FIND, of_mine(), "resources.length", count)


SEVERAL = (
    acl(),
    acl(operation=WRITE),
    acl(permission=DENY, operation=ALL),
    acl(name=Topic("t"), pattern=PREFIXED),
    acl(name=Topic("tu")),
    acl(name="*"),
    acl(GROUP, Own("g"), DESCRIBE),
    acl(CLUSTER, "kafka-cluster", DESCRIBE, principal="User:CN=bob,O=example"),
)
THERE: list[Step] = [created(*SEVERAL, version=3), until(6)]
FILTERS: dict[str, Body] = {
    "everything of a host": of_mine(),
    "a resource type": of_mine(resource_type_filter=TOPIC),
    "a name": of_mine(resource_type_filter=TOPIC, resource_name_filter=Topic("t")),
    "a literal name": of_mine(resource_name_filter=Topic("t"), pattern_type_filter=LITERAL),
    "a prefix": of_mine(resource_name_filter=Topic("t"), pattern_type_filter=PREFIXED),
    "all that matches a name": of_mine(
        resource_type_filter=TOPIC, resource_name_filter=Topic("tu"), pattern_type_filter=MATCH
    ),
    "the wildcard": of_mine(resource_name_filter="*", pattern_type_filter=LITERAL),
    "a principal": of_mine(principal_filter="User:CN=bob,O=example"),
    "an operation": of_mine(operation=READ),
    "what is denied": of_mine(permission_type=DENY),
    "nothing": of_mine(principal_filter="User:carol"),
}
WRONG: dict[str, Body] = {
    "any resource type": acl(ANY),
    "any pattern": acl(pattern=ANY),
    "a matching pattern": acl(pattern=MATCH),
    "any operation": acl(operation=ANY),
    "any permission": acl(permission=ANY),
    "no name": acl(name=""),
    "a cluster of another name": acl(CLUSTER, "cluster"),
    "a principal without a type": acl(principal="alice"),
    "an empty principal": acl(principal=""),
    "a principal without a name": acl(principal="User:"),
    "a principal of another type": acl(principal="Group:admins"),
    "an empty host": acl(host=""),
    "an operation that makes no sense": acl(GROUP, Own("g"), WRITE),
}
UNKNOWN: dict[str, Body] = {
    "an unknown resource type": acl(99),
    "an unknown pattern": acl(pattern=9),
    "an unknown operation": acl(operation=99),
    "an unknown permission": acl(permission=9),
}

SCENARIOS = [
    Scenario(
        "created, found and deleted",
        CREATE,
        [
            created(acl(), acl(), acl(operation=WRITE)),
            until(1),
            created(acl()),
            Ask(FIND, of_mine(), version=3),
            Ask(DELETE, {"filters": [of_mine()]}, version=3),
            until(0),
            Ask(DELETE, {"filters": [of_mine()]}, version=3),
        ],
        unordered=UNORDERED,
    ),
    *(
        Scenario(name, CREATE, [created(wrong, acl(name=Topic("right")))], unordered=UNORDERED)
        for name, wrong in WRONG.items()
    ),
    *(
        Scenario(
            name, CREATE, [created(acl(), wrong), Eventually(FIND, of_mine(), "resources.length", 1, compare=True)]
        )
        for name, wrong in UNKNOWN.items()
    ),
    Scenario("resource type 0", CREATE, [created(acl(), acl(0)), Ask(FIND, of_mine(), version=3)]),  # nothing is stored
    Scenario("none", CREATE, [created()]),
    *(Scenario(name, FIND, [Ask(FIND, wanted)], given=THERE, unordered=UNORDERED) for name, wanted in FILTERS.items()),
    Scenario("an unknown operation", FIND, [Ask(FIND, of_mine(operation=99))]),
    Scenario("operation 0", FIND, [Ask(FIND, of_mine(operation=0))]),
    *(
        Scenario(name, DELETE, [Ask(DELETE, {"filters": [wanted]})], given=THERE, unordered=UNORDERED)
        for name, wanted in FILTERS.items()
    ),
    Scenario(
        "by filters that overlap",
        DELETE,
        [Ask(DELETE, {"filters": [of_mine(operation=READ), of_mine(resource_type_filter=TOPIC)]}), until(2)],
        given=THERE,
        unordered=UNORDERED,
    ),
    Scenario("by no filter", DELETE, [Ask(DELETE, {"filters": []})]),
    Scenario("by an unknown permission", DELETE, [Ask(DELETE, {"filters": [of_mine(permission_type=9)]})]),
]
