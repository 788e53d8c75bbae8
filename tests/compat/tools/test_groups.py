"""Groups, producers and nodes of a cluster: with coordinators and leaders on every node, commands print the same."""

from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.client.admin.groups import GroupDescription, describe_consumer_groups
from kaspar.client.admin.session import Admin
from kaspar.client.offsets import commit_offsets
from tests.compat.commands.catalog import CLUSTER, CONSUMER_GROUPS, METADATA_QUORUM, TRANSACTIONS
from tests.compat.tools.comparing import Command, Side, sentences

GROUPS = [f"group-{number}" for number in range(8)]


def _same(sides: tuple[Side, Side], command: Command, *arguments: str, in_order: bool = True) -> str:
    """Both look at the same things of the cluster. Returns what is printed."""
    theirs, ours = (side.run_unseen(command, *arguments) for side in sides)
    shown = [sentences(each.output).splitlines() for each in (theirs, ours)]
    if not in_order:
        shown = [sorted(lines) for lines in shown]
    assert (ours.code, shown[1], sentences(ours.errors)) == (theirs.code, shown[0], sentences(theirs.errors))
    return ours.output


def test_groups_on_several_coordinators(sides: tuple[Side, Side]) -> None:
    topic = sides[0].new_topic([(1, 2), (2, 3), (3, 1)])
    servers = ("--bootstrap-server", sides[0].cluster.bootstrap_servers)
    offsets = {TopicPartition(topic, number): 0 for number in range(3)}
    with Client(sides[0].cluster.bootstrap_servers) as client:
        for group in GROUPS:
            assert commit_offsets(client, group, offsets) == {}
    with Admin(sides[0].cluster.bootstrap_servers) as admin:
        described = describe_consumer_groups(admin, GROUPS)
    coordinators = {each.coordinator.broker_id for each in described.values() if isinstance(each, GroupDescription)}
    assert len(coordinators) > 1
    named = [word for group in GROUPS for word in ("--group", group)]
    _same(sides, CONSUMER_GROUPS, *servers, "--describe", *named)
    _same(sides, CONSUMER_GROUPS, *servers, "--describe", *named, "--state")
    _same(sides, CONSUMER_GROUPS, *servers, "--list", "--state", "--type", in_order=False)
    _same(sides, CONSUMER_GROUPS, *servers, "--reset-offsets", *named, "--all-topics", "--to-latest", in_order=False)
    deleted = sides[1].run_unseen(CONSUMER_GROUPS, *servers, "--delete", *named)
    assert deleted.output.endswith("was successful.\n")
    assert not {*GROUPS} & {*_same(sides, CONSUMER_GROUPS, *servers, "--list", in_order=False).split()}


def test_producers_of_every_replica(sides: tuple[Side, Side]) -> None:
    topic = sides[0].new_topic([(1, 2)])
    servers = ("--bootstrap-server", sides[0].cluster.bootstrap_servers)
    for words in ((), ("--broker-id", "1"), ("--broker-id", "2")):
        _same(sides, TRANSACTIONS, *servers, "describe-producers", "--topic", topic, "--partition", "0", *words)
    _same(sides, TRANSACTIONS, *servers, "find-hanging", "--broker-id", "2")
    _same(sides, TRANSACTIONS, *servers, "list")


def test_nodes_are_listed(sides: tuple[Side, Side]) -> None:
    servers = ("--bootstrap-server", sides[0].cluster.bootstrap_servers)
    assert _same(sides, CLUSTER, "list-endpoints", *servers).count("unfenced") == 3
    status = [side.run_unseen(METADATA_QUORUM, *servers, "describe", "--status").output for side in sides]
    theirs, ours = (
        [line for line in each.splitlines() if line.startswith(("ClusterId", "Leader", "Current"))] for each in status
    )
    assert ours == theirs
