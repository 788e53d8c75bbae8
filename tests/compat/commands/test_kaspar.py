"""`kaspar` prints the same for an Apache Kafka cluster as for ours."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from kaspar.cli.main import main
from tests.compat.commands.settling import settle_broker
from tests.peers.kafka import ApacheKafka
from tests.peers.kaspar import KasparProcess
from tests.peers.process import BrokerProcess


@pytest.fixture(autouse=True)
def _no_profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


class Side:
    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        settle_broker(self._broker)
        output, errors = io.StringIO(), io.StringIO()
        with redirect_stdout(output), redirect_stderr(errors):
            code = main([*arguments, "-b", self._broker.bootstrap])
        return code, output.getvalue(), errors.getvalue()

    def json(self, *arguments: str) -> Any:
        code, output, errors = self(*arguments, "--json")
        assert code == 0, errors
        return json.loads(output)


@pytest.fixture(params=["Kaspar", "Apache Kafka"])
def side(request: pytest.FixtureRequest, kaspar: KasparProcess) -> Side:
    broker: BrokerProcess = kaspar
    if request.param == "Apache Kafka":
        broker = request.getfixturevalue("apache_kafka")
        assert isinstance(broker, ApacheKafka)
    return Side(broker)


def test_topics(side: Side) -> None:
    created = side("topic", "create", "kaspar-cli-t", "-p", "2", "-r", "1", "--set", "retention.ms=1000")
    assert created == (0, "topic kaspar-cli-t: created\n", "")
    (listed,) = side.json("topic", "list", "kaspar-cli-*")
    assert (listed["partitions"], listed["replication_factor"], listed["offline"]) == (2, 1, 0)
    (described,) = side.json("topic", "describe", "kaspar-cli-t")
    assert [each["end_offset"] for each in described["partitions"]] == [0, 0]
    assert [(each["name"], each["value"]) for each in described["configs"]] == [("retention.ms", "1000")]
    assert side("topic", "alter", "kaspar-cli-t", "--unset", "retention.ms")[0] == 0
    assert side("config", "get", "topic/kaspar-cli-t", "retention.ms") == (0, "-1\n", "")
    assert side("topic", "add-partitions", "kaspar-cli-t", "-n", "1")[1] == "topic kaspar-cli-t: 3 partitions\n"
    assert side("topic", "trim", "kaspar-cli-t", "--before", "end", "-p", "0")[0] == 0
    assert side("log", "sizes", "kaspar-cli-t", "--no-headers")[1].split() == ["kaspar-cli-t", "3", "0B"]
    assert side("topic", "delete", "kaspar-cli-t") == (0, "topic kaspar-cli-t: deleted\n", "")
    assert side("topic", "delete", "kaspar-cli-t") == (3, "", "kaspar: topic kaspar-cli-t: does not exist\n")


def test_groups(side: Side) -> None:
    side("topic", "create", "kaspar-cli-g")
    moved = side("group", "seek", "kaspar-cli", "--to", "start", "--topic", "kaspar-cli-g", "--no-headers")
    assert (moved[0], moved[1].split()) == (0, ["kaspar-cli-g", "0", "-", "0"])
    assert "kaspar-cli" in [each["name"] for each in side.json("group", "list", "--state", "Empty")]
    assert side.json("group", "lag", "kaspar-cli") == [
        {"group": "kaspar-cli", "topic": "kaspar-cli-g", "partitions": 1, "lag": 0}
    ]
    (described,) = side.json("group", "describe", "kaspar-cli")
    assert (described["state"], described["members"]) == ("Empty", [])
    assert side("group", "delete", "kaspar-cli") == (0, "group kaspar-cli: deleted\n", "")
    code, _, error = side("group", "describe", "kaspar-cli")
    assert (code, error) == (3, "kaspar: there is no group kaspar-cli: 'kaspar group list' lists the groups\n")
    side("topic", "delete", "kaspar-cli-g")


def test_cluster_users_and_permissions(side: Side) -> None:
    assert [each["id"] for each in side.json("cluster", "info")["brokers"]] == [1]
    assert side("cluster", "health")[0] == 0
    assert [each["status"] for each in side.json("cluster", "quorum")["replicas"]][:1] == ["voter"]
    assert len(side.json("broker", "log-dirs")) == 1
    assert all(each["coordinator"] == 1 for each in side.json("txn", "list"))
    assert side("user", "create", "kaspar-cli", "--password", "x") == (0, "user kaspar-cli: created\n", "")
    assert side("user", "delete", "kaspar-cli") == (0, "user kaspar-cli: deleted\n", "")
    assert side("user", "delete", "kaspar-cli")[0] == 3
    who = ("--principal", "User:kaspar-cli")
    assert side("acl", "add", *who, "--operation", "read", "--topic", "kaspar-cli")[0] == 0
    assert [each["operation"] for each in side.json("acl", "list", *who)] == ["read"]
    assert side("acl", "remove", *who)[1] == "allow User:kaspar-cli to read topic kaspar-cli: removed\n"
    assert side("quota", "set", "--user", "kaspar-cli", "producer_byte_rate=5")[0] == 0
    assert [each["value"] for each in side.json("quota", "list") if each["who"] == "user=kaspar-cli"] == [5.0]
    assert side("quota", "unset", "--user", "kaspar-cli", "producer_byte_rate")[0] == 0
