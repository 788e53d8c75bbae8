"""Kafka's own kafka-consumer-groups, by its class: list, describe, reset offsets, delete offsets, delete."""

import pytest

from tests.compat.clients.api import Protocol
from tests.compat.clients.registry import CONFLUENT
from tests.compat.clients.stage import Crew, Stage
from tests.compat.clients.words import partitions_of, wait_for_offsets, wait_until_shared
from tests.compat.scenario import eventually
from tests.peers.brokers import Brokers
from tests.peers.kafka import run_tool

TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


def tool(broker: Brokers, *arguments: str) -> list[list[str]]:
    """The words of each line that the tool printed."""
    done = run_tool(TOOL, "--bootstrap-server", broker.bootstrap, *arguments)
    return [line.split() for line in done.stdout.splitlines() if line.strip()]


def said(lines: list[list[str]], *words: str) -> bool:
    return any(all(word in line for word in words) for line in lines)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_tool_shows_a_group_in_use(broker: Brokers, crew: Crew, protocol: Protocol) -> None:
    with Stage(crew, CONFLUENT) as stage:
        topic, group = stage.new_topic(partitions=2), stage.new_name("group")
        for partition in range(2):
            stage.write(topic, *"abcde", partition=partition)
        member = stage.consumer(group, topic, protocol=protocol, assignor="range")
        wait_until_shared([member], partitions_of(topic, 2))
        member.commit([(topic, 0, 3, ""), (topic, 1, 5, "")])
        assert [group, "Stable"] in tool(broker, "--list", "--state")
        described = tool(broker, "--describe", "--group", group)
        assert sorted(line[:6] for line in described if line[0] == group) == [
            [group, topic, "0", "3", "5", "2"],
            [group, topic, "1", "5", "5", "0"],
        ]
        (shown,) = (line for line in tool(broker, "--describe", "--group", group, "--members") if line[0] == group)
        assert shown[3:5] == ["rdkafka", "2"]
        (shown,) = (line for line in tool(broker, "--describe", "--group", group, "--state") if line[0] == group)
        assert shown[3:] == ["range", "Stable", "1"]


def test_the_tool_changes_a_group_that_is_not_in_use(broker: Brokers, crew: Crew) -> None:
    with Stage(crew, CONFLUENT) as stage:
        topic, group = stage.new_topic(partitions=2), stage.new_name("group")
        reset = ("--reset-offsets", "--group", group, "--topic")
        stage.write(topic, *"abcde")
        member = stage.consumer(group, topic)
        wait_until_shared([member], partitions_of(topic, 2))
        member.commit([(topic, 0, 3, ""), (topic, 1, 0, "")])
        assert said(
            tool(broker, "--delete", "--group", group), "org.apache.kafka.common.errors.GroupNotEmptyException:"
        )
        assert said(tool(broker, *reset, topic, "--to-earliest", "--execute"), "Error:", "inactive,")
        member.close()
        eventually(lambda: stage.admin.describe_group(group).state == "Empty", "the group is empty")
        planned = tool(broker, *reset, topic, "--to-latest", "--dry-run")
        assert sorted(line[2:] for line in planned if line[0] == group) == [["0", "5"], ["1", "0"]]
        wait_for_offsets(stage.admin, group, {(topic, 0): 3, (topic, 1): 0})
        assert [group, topic, "0", "1"] in tool(broker, *reset, f"{topic}:0", "--shift-by", "-2", "--execute")
        wait_for_offsets(stage.admin, group, {(topic, 0): 1, (topic, 1): 0})
        deleted = tool(broker, "--delete-offsets", "--group", group, "--topic", f"{topic}:1")
        assert [topic, "1", "Successful"] in deleted
        wait_for_offsets(stage.admin, group, {(topic, 0): 1})
        assert said(tool(broker, "--delete", "--group", group), "was", "successful.")
        assert group not in stage.admin.groups()
