"""`Broker(registry=True, rest=True, ...)`: services for users' tests."""

import json
import urllib.request
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from kaspar.base.errors import KasparError
from kaspar.testing import Broker


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as response:
        return json.load(response)


def test_registry_and_rest_proxy_run_beside_a_broker_and_keep_their_ports() -> None:
    with Broker(registry=True, rest=True) as broker, SchemaRegistryClient({"url": broker.registry_url}) as client:
        registered = client.register_schema("orders-value", Schema('"string"', "AVRO"))
        assert "_schemas" in get(f"{broker.rest_url}/topics")
        urls = broker.registry_url, broker.rest_url
        broker.stop()
        broker.start()
        assert (broker.registry_url, broker.rest_url) == urls
        assert client.get_latest_version("orders-value").schema_id == registered
        assert get(f"{broker.registry_url}/subjects") == ["orders-value"]


def test_console_and_monitor_run_beside_a_broker() -> None:
    with Broker(monitor=True, console=True) as broker:
        assert get(f"{broker.monitor_url}/v3/kafka")["clusters"] == ["local"]
        with urllib.request.urlopen(broker.console_url, timeout=30) as page:
            assert b"<title>Kaspar</title>" in page.read()


def test_broker_without_services_says_how_to_get_them() -> None:
    with Broker(rest=True) as broker, pytest.raises(KasparError, match="start the broker with registry=True"):
        assert broker.registry_url


def test_fixture_has_a_registry(kaspar_broker_with_registry: Broker) -> None:
    assert get(f"{kaspar_broker_with_registry.registry_url}/subjects") == []
