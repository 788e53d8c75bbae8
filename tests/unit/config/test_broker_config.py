"""What a broker's settings come to, and what stops its start."""

import pytest

from kaspar.base.errors import InvalidSetting
from kaspar.config import BrokerConfig, Endpoint, Settings
from kaspar.config.checks import one_of
from kaspar.config.declaration import setting
from kaspar.config.kinds import PASSWORD


def test_node_id_and_broker_id_are_two_names_of_one_thing() -> None:
    assert BrokerConfig.of({"broker.id": "7"}).node_id == 7
    assert BrokerConfig.of({"node.id": "7"}).broker_id == 7
    assert BrokerConfig.of({"node.id": "7", "broker.id": "-1"}).node_id == 7
    with pytest.raises(InvalidSetting, match=r"node\.id is 1 and broker\.id is 2"):
        BrokerConfig.of({"node.id": "1", "broker.id": "2"})


def test_log_dirs_come_before_log_dir() -> None:
    assert BrokerConfig.of({"log.dir": "/a"}).log_dirs == ("/a",)
    assert BrokerConfig.of({"log.dir": "/a", "log.dirs": "/b,/c"}).log_dirs == ("/b", "/c")
    assert BrokerConfig.of({}).log_dirs == ("/tmp/kafka-logs",)
    with pytest.raises(InvalidSetting, match=r"log\.dirs contains a directory twice"):
        BrokerConfig.of({"log.dirs": "/b,/b"})
    with pytest.raises(InvalidSetting, match=r"log\.dirs contains an empty directory name"):
        BrokerConfig.of({"log.dirs": "/b,"})


def test_controller_listeners_are_not_opened() -> None:
    config = BrokerConfig.of(
        {
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        }
    )
    assert config.endpoints == (Endpoint("PLAINTEXT", "", 9092, "PLAINTEXT"),)


def test_advertised_listeners_take_the_protocol_of_their_listener() -> None:
    config = BrokerConfig.of(
        {
            "listeners": "inside://0.0.0.0:9092,outside://[::1]:9093",
            "advertised.listeners": "outside://example.com:19093,inside://10.0.0.1:9092",
            "listener.security.protocol.map": "inside:plaintext,outside:PLAINTEXT",
        }
    )
    assert config.advertised_endpoints == (
        Endpoint("OUTSIDE", "example.com", 19093, "PLAINTEXT"),
        Endpoint("INSIDE", "10.0.0.1", 9092, "PLAINTEXT"),
    )
    assert [str(endpoint) for endpoint in config.endpoints] == ["INSIDE://0.0.0.0:9092", "OUTSIDE://[::1]:9093"]


def test_ipv4_and_ipv6_may_share_a_port() -> None:
    both = BrokerConfig.of(
        {
            "listeners": "A://127.0.0.1:9092,B://[::1]:9092",
            "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
        }
    )
    assert len(both.endpoints) == 2


def test_limits_by_address_and_metrics_address() -> None:
    config = BrokerConfig.of(
        {"max.connections.per.ip.overrides": "127.0.0.1:5, host:7", "kaspar.metrics.listener": "[::1]:9400"}
    )
    assert config.max_connections_by_address == {"127.0.0.1": 5, "host": 7}
    assert config.metrics_address == ("::1", 9400)
    assert BrokerConfig.of({}).metrics_address is None


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"num.partitions": "0"}, "Invalid value 0 for configuration num.partitions: Value must be at least 1"),
        ({"listeners": "localhost:9092"}, "listeners contains 'localhost:9092'"),
        ({"listeners": "PLAINTEXT://:99999"}, "listeners contains 'PLAINTEXT://:99999'"),
        ({"listeners": "FOO://:9092"}, "No security protocol defined for listener FOO"),
        (
            {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
            "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set.",
        ),
        ({"inter.broker.listener.name": "SSL"}, "inter.broker.listener.name must be a listener name defined in"),
        (
            {"zookeeper.connect": "localhost:2181", "security.inter.broker.protocol": "SSL"},
            "no listener speaks SSL, which brokers use among themselves",
        ),
        ({"listeners": "PLAINTEXT://:1,PLAINTEXT://:2"}, "Each listener must have a different name"),
        (
            {"listeners": "PLAINTEXT://:9092,X://:9092", "listener.security.protocol.map": "X:PLAINTEXT"},
            "Each listener must have a different port",
        ),
        ({"listeners": "X://:1", "controller.listener.names": "X"}, "has no listener for clients"),
        ({"listener.security.protocol.map": "A:B"}, "listener.security.protocol.map contains 'A:B'"),
        ({"advertised.listeners": "OTHER://h:1"}, "contains the listener OTHER, which is not in listeners"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:1"}, "cannot use the nonroutable meta-address 0.0.0.0"),
        ({"advertised.listeners": "PLAINTEXT://a:1,PLAINTEXT://b:1"}, "Each listener must have a different name"),
        ({"process.roles": "controller"}, "process.roles must contain broker"),
        ({"process.roles": "cook"}, "Invalid value cook for configuration process.roles"),
        ({"log.roll.ms": "0"}, "log.roll.ms must be greater than or equal to 1"),
        ({"log.roll.jitter.ms": "-1"}, "log.roll.jitter.ms must be greater than or equal to 0"),
        ({"log.retention.ms": "0"}, "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"),
        ({"max.connections.per.ip.overrides": "foo"}, "max.connections.per.ip.overrides contains 'foo'"),
        ({"kaspar.metrics.listener": "9400"}, "kaspar.metrics.listener: it must be host:port"),
        ({"kaspar.log.level": "LOUD"}, "Invalid value LOUD for configuration kaspar.log.level"),
    ],
)
def test_wrong_settings_stop_with_a_sentence(values: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidSetting) as stopped:
        BrokerConfig.of(values)
    assert sentence in str(stopped.value)


def test_a_wrong_secret_is_not_shown() -> None:
    class Vault(Settings):
        code: str = setting(PASSWORD, "1234", one_of("1234"), doc="Opens the vault.")

    with pytest.raises(InvalidSetting, match=r"Invalid value \[hidden\] for configuration code"):
        Vault.declared["code"].parse("0000")


def test_a_cleaner_thread_needs_memory() -> None:
    assert BrokerConfig.of({"log.cleaner.dedupe.buffer.size": "2100000"}).log_cleaner_dedupe_buffer_size == 2_100_000
    with pytest.raises(InvalidSetting, match=r"log\.cleaner\.dedupe\.buffer\.size must be at least 1MB per cleaner"):
        BrokerConfig.of({"log.cleaner.dedupe.buffer.size": "2100000", "log.cleaner.threads": "3"})


def test_the_metrics_page_is_on_the_loopback_address_unless_a_host_is_named() -> None:
    assert BrokerConfig.of({"kaspar.metrics.listener": ":9404"}).metrics_address == ("127.0.0.1", 9404)
    assert BrokerConfig.of({"kaspar.metrics.listener": "0.0.0.0:9404"}).metrics_address == ("0.0.0.0", 9404)


def test_authentication_of_pages_needs_credentials() -> None:
    with pytest.raises(InvalidSetting, match=r"requires kaspar\.http\.credentials\.file"):
        BrokerConfig.of({"kaspar.http.authentication": "basic"})
