"""Kafka's own kafka-acls against a broker with an authorizer."""

from pathlib import Path

from kaspar.config.broker.authorization import STANDARD_AUTHORIZER
from tests.peers.kafka import kafka_jars, run_tool
from tests.peers.missing import unless_missing
from tests.peers.observed import ObservedBroker

TOOL = "org.apache.kafka.tools.AclCommand"


def test_kafka_acls_adds_lists_and_removes(tmp_path: Path) -> None:
    unless_missing(kafka_jars)
    settings = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
    with ObservedBroker(tmp_path, overrides=settings) as broker:
        to = ("--bootstrap-server", broker.bootstrap)
        run_tool(TOOL, *to, "--add", "--allow-principal", "User:alice", "--producer", "--topic", "orders")
        prefixed = ("--resource-pattern-type", "prefixed", "--topic", "audit-")
        run_tool(TOOL, *to, "--add", "--deny-principal", "User:bob", "--operation", "Read", *prefixed)
        listed = run_tool(TOOL, *to, "--list").stdout
        assert "resourceType=TOPIC, name=orders, patternType=LITERAL" in listed
        for operation in ("WRITE", "DESCRIBE", "CREATE"):
            assert f"(principal=User:alice, host=*, operation={operation}, permissionType=ALLOW)" in listed
        assert "resourceType=TOPIC, name=audit-, patternType=PREFIXED" in listed
        assert "(principal=User:bob, host=*, operation=READ, permissionType=DENY)" in listed
        run_tool(TOOL, *to, "--remove", "--force", "--topic", "orders")
        left = run_tool(TOOL, *to, "--list").stdout
        assert "User:alice" not in left
        assert "User:bob" in left
