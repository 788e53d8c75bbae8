"""A broker with an authorizer, as a process: what it refuses at the start, and its audit log."""

import json
from pathlib import Path

from kaspar.base.errors import ErrorCode
from kaspar.config.broker.authorization import STANDARD_AUTHORIZER
from tests.integration.commands import refusal
from tests.peers.observed import ObservedBroker, wait_until


def test_another_authorizer_is_refused_at_the_start(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"node.id=1\nlog.dirs={tmp_path / 'data'}\nauthorizer.class.name=com.example.Authorizer\n")
    assert refusal(file) == (
        "Invalid value com.example.Authorizer for configuration authorizer.class.name: Java classes cannot be loaded; "
        f"use {STANDARD_AUTHORIZER}, or leave it empty to allow everything"
    )


def test_what_is_denied_is_in_a_file_of_its_own_as_json_lines(tmp_path: Path) -> None:
    file = tmp_path / "authorizer.json"
    settings = {
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:admin",
        "kaspar.authorizer.log.file": str(file),
    }
    with ObservedBroker(tmp_path / "broker", overrides=settings) as broker:
        with broker.client() as client:
            assert client.create_topic("orders\nof today") == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        wait_until(lambda: bool(file.read_text()), "the audit log has a line")
        (line,) = file.read_text().splitlines()
        entry = json.loads(line)
        assert entry["resource"] == "Topic:LITERAL:orders\nof today"
        assert (entry["message"], entry["principal"], entry["host"]) == ("denied", "User:ANONYMOUS", "127.0.0.1")
        assert (entry["operation"], entry["request"]) == ("CREATE", "CreateTopics")
        assert not broker.log_lines("kaspar.authorizer.logger")
