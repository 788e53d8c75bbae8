"""kafka-topics and kafka-log-dirs beside Kafka's on a cluster of three: replicas, racks, and what is being moved."""

import json
import re

from tests.compat.commands.catalog import BROKER_API_VERSIONS, LOG_DIRS, TOPICS
from tests.compat.tools.comparing import Side, same_on_both_sides

SLOW = "1000"  # bytes per second: what moves does not arrive during a test


def _describe(side: Side, topic: str, *arguments: str) -> None:
    done = side.run_unseen(TOPICS, "--bootstrap-server", side.cluster.bootstrap_servers, "--describe", *arguments)
    assert done.code == 0
    throttled = r"(leader|follower)\.replication\.throttled\.replicas=[^,\t\n]*,?"
    own = [re.sub(throttled, "", line) for line in done.output.splitlines() if f"Topic: {topic}\t" in line]
    side.see([re.sub(r"TopicId: \S+", "TopicId: ID", line) for line in own])


def test_replicas_and_filters(sides: tuple[Side, Side]) -> None:
    def scenario(side: Side) -> None:
        topic = side.new_topic([(1, 2), (3, 1), (2, 3)])
        _describe(side, topic)
        for option in ("under-replicated", "at-min-isr", "under-min-isr", "unavailable"):
            _describe(side, topic, f"--{option}-partitions")

    same_on_both_sides(sides, scenario)


def test_active_reassignment(sides: tuple[Side, Side]) -> None:
    def scenario(side: Side) -> None:
        topic = side.new_topic([(1, 2)])
        side.produce(topic, batches=4, batch_bytes=900_000)
        plan = side.plan(topic, (3, 2))
        side.reassign("--execute", "--reassignment-json-file", plan, "--throttle", SLOW)
        _describe(side, topic)
        _describe(side, topic, "--under-replicated-partitions")
        side.reassign("--cancel", "--reassignment-json-file", plan)

    same_on_both_sides(sides, scenario)


def test_log_directories_of_some_brokers(sides: tuple[Side, Side]) -> None:
    def scenario(side: Side) -> None:
        topic = side.new_topic([(1, 2), (2, 3)])
        words = ("--describe", "--topic-list", topic, "--broker-list", "3,2")
        done = side.run_unseen(LOG_DIRS, "--bootstrap-server", side.cluster.bootstrap_servers, *words)
        *head, text = done.output.splitlines()
        side.see(head)
        for broker in json.loads(text)["brokers"]:
            partitions = [each for directory in broker["logDirs"] for each in directory["partitions"]]
            side.see([str(broker["broker"]), *sorted(map(json.dumps, partitions))])

    same_on_both_sides(sides, scenario)


def test_all_brokers_have_their_racks(sides: tuple[Side, Side]) -> None:
    def scenario(side: Side) -> None:
        done = side.run_unseen(BROKER_API_VERSIONS, "--bootstrap-server", side.cluster.bootstrap_servers)
        side.see(sorted(done.output.split("\n)\n")))

    same_on_both_sides(sides, scenario)
