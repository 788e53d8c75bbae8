"""What the commands say about wrong options: the same as Kafka's."""

import pytest

from tests.compat.tools.comparing import (
    LEADER_ELECTION,
    REASSIGN,
    VERIFICATION,
    Command,
    Side,
    same_on_both_sides,
)

ADDRESS = ("--bootstrap-server", "127.0.0.1:1")

WRONG_REASSIGN = [
    (*ADDRESS, "--list", "--zork"),
    (*ADDRESS, "--list", "--execute"),
    (*ADDRESS,),
    ("--list",),
    (*ADDRESS, "--bootstrap-controller", "127.0.0.1:1", "--list"),
    (*ADDRESS, "--execute"),
    (*ADDRESS, "--verify"),
    (*ADDRESS, "--cancel"),
    (*ADDRESS, "--generate"),
    (*ADDRESS, "--generate", "--topics-to-move-json-file", "x"),
    *((*ADDRESS, "--list", option, "5") for option in ("--throttle", "--timeout", "--replica-alter-log-dirs-throttle")),
    *((*ADDRESS, "--list", option) for option in ("--additional", "--preserve-throttles", "--disable-rack-aware")),
    (*ADDRESS, "--list", "--disallow-replication-factor-change"),
    (*ADDRESS, "--verify", "--reassignment-json-file", "x", "--additional"),
    (*ADDRESS, "--verify", "--reassignment-json-file", "x", "--timeout", "5"),
    (*ADDRESS, "--execute", "--reassignment-json-file", "x", "--preserve-throttles"),
    (*ADDRESS, "--execute", "--reassignment-json-file", "x", "--broker-list", "1"),
    (*ADDRESS, "--cancel", "--reassignment-json-file", "x", "--throttle", "5"),
    ("--bootstrap-controller", "127.0.0.1:1", "--execute", "--reassignment-json-file", "x"),
    (*ADDRESS, "--execute", "--reassignment-json-file"),
    (*ADDRESS, "--execute", "--reassignment-json-file", "/nowhere"),
    (*ADDRESS, "--generate", "--topics-to-move-json-file", "/nowhere", "--broker-list", "1"),
]

WRONG_ELECTION = [
    (*ADDRESS, "--zork"),
    (*ADDRESS, "--election-type", "zork", "--all-topic-partitions"),
    (*ADDRESS, "--all-topic-partitions"),
    ("--election-type", "preferred", "--all-topic-partitions"),
    (*ADDRESS, "--election-type", "preferred"),
    (*ADDRESS, "--election-type", "preferred", "--topic", "x"),
    (*ADDRESS, "--election-type", "preferred", "--topic", "x", "--partition", "y"),
    (*ADDRESS, "--election-type", "preferred", "--topic", "x", "--partition", "0", "--all-topic-partitions"),
    (*ADDRESS, "--election-type", "preferred", "--all-topic-partitions", "--partition", "0"),
    (*ADDRESS, "--election-type", "preferred", "--path-to-json-file", "/nowhere"),
    (*ADDRESS, "--election-type", "unclean", "--all-topic-partitions", "--admin.config", "x", "--command-config", "x"),
]


@pytest.mark.parametrize("arguments", WRONG_REASSIGN, ids=" ".join)
def test_wrong_options_of_reassign_partitions(arguments: tuple[str, ...], sides: tuple[Side, Side]) -> None:
    same_on_both_sides(sides, lambda side: side.see(side.run(REASSIGN, *arguments).code))


@pytest.mark.parametrize("arguments", WRONG_ELECTION, ids=" ".join)
def test_wrong_options_of_leader_election(arguments: tuple[str, ...], sides: tuple[Side, Side]) -> None:
    same_on_both_sides(sides, lambda side: side.see(side.run(LEADER_ELECTION, *arguments).code))


def test_wrong_options_of_replica_verification(sides: tuple[Side, Side]) -> None:
    def scenario(side: Side) -> None:
        servers = side.cluster.bootstrap_servers
        side.new_topic([(1,)])  # Kafka's looks at the pattern when there is a topic
        side.run(VERIFICATION, "--topics-include", "x")
        side.run(VERIFICATION, "--broker-list", servers, "--zork")
        side.run(VERIFICATION, "--broker-list", servers, "--topics-include", "[")

    same_on_both_sides(sides, scenario)


@pytest.mark.parametrize("command", [REASSIGN, LEADER_ELECTION], ids=["reassign-partitions", "leader-election"])
def test_no_broker_reachable_is_a_sentence_after_the_timeout(command: Command, sides: tuple[Side, Side]) -> None:
    def scenario(side: Side) -> None:
        config = side.file("default.api.timeout.ms=700\nrequest.timeout.ms=300\n")
        action = ("--list",) if command is REASSIGN else ("--election-type", "preferred", "--all-topic-partitions")
        done = side.run(command, *ADDRESS, *action, "--command-config", config)
        assert done.code == 1

    for side in sides:
        scenario(side)
    (theirs,), (ours,) = (side.seen for side in sides)
    assert (ours.code, ours.output) == (theirs.code, theirs.output)
    assert ours.errors.startswith(theirs.errors)  # ours also says what it waited for


def test_settings_file_that_is_wrong_is_a_sentence(sides: tuple[Side, Side]) -> None:
    for side in sides:
        done = side.run(REASSIGN, *ADDRESS, "--list", "--command-config", "/nowhere")
        assert done.code == 1
        assert done.output.startswith("Error: /nowhere")
    _, ours = sides
    encrypted = ours.run(REASSIGN, *ADDRESS, "--list", "--command-config", ours.file("security.protocol=TLS\n"))
    assert encrypted.code == 1
    assert "Invalid value TLS for configuration security.protocol" in encrypted.output
    no_address = ours.run(REASSIGN, "--bootstrap-server", "nonsense", "--list")
    assert (no_address.code, no_address.errors) == (1, "")
    assert "nonsense is not a list of host:port" in no_address.output
