"""kafka-reassign-partitions beside Kafka's: moves, replication factors, proposals, errors."""

import json
from typing import Any

import pytest

from tests.compat.tools.comparing import REASSIGN, Side, check_same, same_on_both_sides


def test_partitions_are_moved_and_verified(sides: tuple[Side, Side]) -> None:
    def scenario(side: Side) -> None:
        topic = side.new_topic([(1, 2), (2, 3), (3, 1)])
        side.reassign("--list")
        plan = side.plan(topic, (2, 3), (3, 1))
        side.reassign("--execute", "--reassignment-json-file", plan)
        side.wait_until_reassigned(topic)
        side.see([list(each.replicas) for each in side.partitions(topic)])
        side.reassign("--verify", "--reassignment-json-file", plan)
        side.reassign("--verify", "--reassignment-json-file", plan, "--preserve-throttles")
        side.reassign("--cancel", "--reassignment-json-file", plan)
        side.reassign("--cancel", "--reassignment-json-file", plan, "--preserve-throttles")
        side.reassign("--verify", "--reassignment-json-file", side.plan(topic, (1, 2), (3, 1), (2,)))

    same_on_both_sides(sides, scenario)


def test_replication_factor_is_raised_and_lowered_unless_disallowed(sides: tuple[Side, Side]) -> None:
    def scenario(side: Side) -> None:
        topic = side.new_topic([(1,)])
        flag = "--disallow-replication-factor-change"
        side.reassign("--execute", flag, "--reassignment-json-file", side.plan(topic, (1, 2, 3)))
        for replicas in ((1, 2, 3), (3,)):
            side.reassign("--execute", "--reassignment-json-file", side.plan(topic, replicas))
            side.wait_until_reassigned(topic)
            side.see([list(each.replicas) for each in side.partitions(topic)])
        side.reassign("--execute", flag, "--reassignment-json-file", side.plan(topic, (2,)))
        side.wait_until_reassigned(topic)

    same_on_both_sides(sides, scenario)


def test_unknown_topics_partitions_and_brokers(sides: tuple[Side, Side]) -> None:
    def scenario(side: Side) -> None:
        topic = side.new_topic([(1, 2)])
        for action in ("--execute", "--verify", "--cancel"):
            side.reassign(action, "--reassignment-json-file", side.plan("nowhere", (1, 2)))
            side.reassign(action, "--reassignment-json-file", side.plan(topic, (1, 2), (1, 2), (1, 2)))
        side.reassign("--execute", "--reassignment-json-file", side.plan(topic, (1, 9)))

    # A partition next to the last one: Kafka's --verify fails with "Index 1 out of bounds for length 1".
    kafka, ours = sides
    for side in sides:
        scenario(side)
    theirs_of_verify = kafka.seen.pop(3)
    ours_of_verify = ours.seen.pop(3)
    assert "out of bounds" in theirs_of_verify.output
    assert "partition TOPIC0-1, but replica set is  rather than 1,2." in ours_of_verify.output
    check_same(sides)


@pytest.mark.parametrize(
    "content",
    [
        "{}",
        "[1]",
        "5",
        "",
        '{"partitions": 5}',
        '{"partitions": [5]}',
        '{"partitions": []}',
        '{"version": 2, "partitions": []}',
        '{"version": "1"}',
        '{"partitions": [{"partition": 0, "replicas": [1]}]}',
        '{"partitions": [{"topic": "x", "replicas": [1]}]}',
        '{"partitions": [{"topic": "x", "partition": 0}]}',
        '{"partitions": [{"topic": 5, "partition": 0, "replicas": [1]}]}',
        '{"partitions": [{"topic": "x", "partition": "0", "replicas": [1]}]}',
        '{"partitions": [{"topic": "x", "partition": 0, "replicas": 1}]}',
        '{"partitions": [{"topic": "x", "partition": 0, "replicas": ["1"]}]}',
        '{"partitions": [{"topic": "x", "partition": 0, "replicas": []}]}',
        '{"partitions": [{"topic": "x", "partition": 0, "replicas": [1, 2, 1]}]}',
        '{"partitions": [{"topic": "x", "partition": 0, "replicas": [1]}, {"topic": "x", "partition": 0, "replicas": [2]}]}',  # noqa: E501
        '{"partitions": [{"topic": "x", "partition": 0, "replicas": [1, 2], "log_dirs": ["any"]}]}',
        '{"partitions": [{"topic": "x", "partition": 0, "replicas": [1], "log_dirs": "any"}]}',
    ],
)
def test_wrong_reassignment_files(content: str, sides: tuple[Side, Side]) -> None:
    same_on_both_sides(sides, lambda side: _execute(side, content))


def _execute(side: Side, content: str) -> None:
    assert side.reassign("--execute", "--reassignment-json-file", side.file(content)).code == 1


def test_file_that_is_not_json(sides: tuple[Side, Side]) -> None:
    for side in sides:
        _execute(side, "{bad")
        assert side.seen[0].output.startswith("Error: ")
        assert side.seen[0].errors == ""


def test_proposal_has_the_same_form_and_as_many_replicas(sides: tuple[Side, Side]) -> None:
    def scenario(side: Side) -> None:
        topics = [side.new_topic([(1, 2), (2, 1), (1, 2), (2, 1)]), side.new_topic([(1,)])]
        content = {"version": 1, "topics": [{"topic": topic} for topic in topics]}
        for flags in ((), ("--disable-rack-aware",)):
            _generate(side, content, "1,2,3", *flags)
        _generate(side, content, "3")  # fewer than replicas
        _generate(side, content, "1,2,2")
        _generate(side, {"topics": [{"topic": "nowhere"}]}, "1,2")
        _generate(side, {"topics": [{"topic": topics[0]}, {"topic": topics[0]}]}, "1,2")
        _generate(side, {"topics": [{}]}, "1,2")
        _generate(side, {"version": 3}, "1,2")
        _generate(side, {}, "1,2")

    same_on_both_sides(sides, scenario)


def _generate(side: Side, content: object, brokers: str, *flags: str) -> None:
    file = side.file(content)
    done = side.reassign("--generate", "--topics-to-move-json-file", file, "--broker-list", brokers, *flags)
    if done.code == 0 and "Proposed" in done.output:
        compared = side.seen.pop()
        current, _, proposal = compared.output.partition("\n\nProposed partition reassignment configuration\n")
        side.see([compared.code, current, _balance(json.loads(proposal))])


def _balance(proposal: dict[str, Any]) -> dict[str, Any]:
    """What a proposal has whatever its random beginning: the form, and how many replicas each broker gets."""
    brokers: dict[str, list[int]] = {}
    for each in proposal["partitions"]:
        assert each["log_dirs"] == ["any"] * len(each["replicas"])
        assert len(set(each["replicas"])) == len(each["replicas"])
        brokers.setdefault(each["topic"], []).extend(each["replicas"])
    spread = {topic: sorted(map(ids.count, set(ids))) for topic, ids in brokers.items()}
    keys = [list(each) for each in proposal["partitions"]]
    return {"version": proposal["version"], "keys": keys, "spread": spread}


def test_controllers_are_reached_without_a_broker(sides: tuple[Side, Side]) -> None:
    def scenario(side: Side) -> None:
        topic = side.new_topic([(1, 2)])
        controllers = ("--bootstrap-controller", side.cluster.bootstrap_controllers)
        side.run(REASSIGN, *controllers, "--list")
        side.run(REASSIGN, *controllers, "--cancel", "--reassignment-json-file", side.plan(topic, (2, 3)))

    same_on_both_sides(sides, scenario)
