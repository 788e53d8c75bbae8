"""ACLs of the guest, as steps of a scenario."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.compat.responses.api import Api
from tests.compat.responses.play import GUEST_ADDRESS
from tests.compat.responses.scenario import Ask, Eventually, Step
from tests.compat.responses.scenarios.requests import Body

HOST = "127.0.0.1"
ANONYMOUS = "User:ANONYMOUS"
ANY, TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = 1, 2, 3, 4, 5
LITERAL, PREFIXED = 3, 4
ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION = range(2, 10)
DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = range(10, 13)
DENY, ALLOW = 2, 3
KAFKA_CLUSTER = "kafka-cluster"


@dataclass(frozen=True)
class Need:
    """A permission on a resource; its name may be a placeholder."""

    operation: int
    kind: int
    name: object = KAFKA_CLUSTER


def creation(
    kind: int,
    name: object,
    operation: int,
    *,
    permission: int = ALLOW,
    pattern: int = LITERAL,
    principal: str = ANONYMOUS,
    host: str = GUEST_ADDRESS,
) -> Body:
    return {
        "resource_type": kind,
        "resource_name": name,
        "resource_pattern_type": pattern,
        "principal": principal,
        "host": host,
        "operation": operation,
        "permission_type": permission,
    }


def selection(**fields: object) -> Body:
    return {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
        **fields,
    }


def everything(host: str) -> list[Step]:
    kinds = [(TOPIC, "*"), (GROUP, "*"), (CLUSTER, KAFKA_CLUSTER), (TRANSACTIONAL_ID, "*")]
    creations = [creation(kind, name, ALL, host=host) for kind, name in kinds]
    seen = Eventually(Api.DESCRIBE_ACLS, selection(host_filter=host), "resources.length", len(kinds))
    return [Ask(Api.CREATE_ACLS, {"creations": creations}, version=3), seen]


def guest_acls_are(*creations: Body) -> list[Step]:
    """From the next step on, the guest has these ACLs and no others."""
    of_guest = selection(host_filter=GUEST_ADDRESS)
    steps: list[Step] = [
        Ask(Api.DELETE_ACLS, {"filters": [of_guest]}, version=3),
        Eventually(Api.DESCRIBE_ACLS, of_guest, "resources.length", 0),
    ]
    if creations:
        resources = {(str(each["resource_type"]), repr(each["resource_name"])) for each in creations}
        steps += [
            Ask(Api.CREATE_ACLS, {"creations": list(creations)}, version=3),
            Eventually(Api.DESCRIBE_ACLS, of_guest, "resources.length", len(resources)),
        ]
    return steps


def allowed(needs: Sequence[Need]) -> list[Body]:
    return [creation(need.kind, need.name, need.operation) for need in needs]


def all_allowed(needs: Sequence[Need]) -> list[Body]:
    return [creation(kind, name, ALL) for kind, name in dict.fromkeys((need.kind, need.name) for need in needs)]


def denied(need: Need, *, wildcard: bool = False) -> Body:
    name = "*" if wildcard and need.kind != CLUSTER else need.name
    return creation(need.kind, name, need.operation, permission=DENY)
