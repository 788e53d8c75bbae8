"""ACLs in a cluster: created at one broker, they count at that one with the response, and soon at every other."""

import asyncio
from pathlib import Path

from kaspar.acls import Acl, AclOperation, AclPermissionType, PatternType, ResourceType
from kaspar.config.broker.authorization import STANDARD_AUTHORIZER
from kaspar.controller.events import CreateAcls
from kaspar.network.gates import ANONYMOUS
from tests.integration.in_process_cluster import InProcessCluster, running_cluster, until

SETTINGS = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": str(ANONYMOUS)}
MANY = 2_000


def acl(name: str, principal: str = "User:alice") -> Acl:
    return Acl(
        ResourceType.TOPIC, name, PatternType.LITERAL, principal, "*", AclOperation.READ, AclPermissionType.ALLOW
    )


def may_read(cluster: InProcessCluster, broker_id: int, topic: str) -> bool:
    access = cluster.brokers[broker_id].access
    assert access is not None
    verdict = access.authorizer.authorize("User:alice", "10.0.0.1", AclOperation.READ, ResourceType.TOPIC, topic)
    return verdict.allowed


def test_a_change_reaches_every_broker(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_cluster(tmp_path, **SETTINGS) as cluster:
            for broker_id in (1, 2, 3):
                await cluster.start(broker_id)
            many = tuple(acl(f"other-{number}", f"User:{number}") for number in range(MANY))
            await cluster.brokers[1].controller.submit(CreateAcls(many))
            await cluster.brokers[2].controller.submit(CreateAcls((acl("t"),)))
            assert may_read(cluster, 2, "t"), "who has the response may rely on it"
            await until(lambda: all(may_read(cluster, broker_id, "t") for broker_id in (1, 2, 3)))
            assert not may_read(cluster, 3, "other-1")

    asyncio.run(scenario())
