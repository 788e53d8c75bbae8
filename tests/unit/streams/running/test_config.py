"""The settings of a streams program (kaspar.streams.running.config)."""

from pathlib import Path
from typing import Any

import pytest

from kaspar.base.errors import InvalidSetting
from kaspar.streams import KafkaStreams, StreamsBuilder, serdes
from kaspar.streams.running.config import StreamsConfig
from kaspar.streams.topology.context import OnError

REQUIRED = {"application.id": "app", "bootstrap.servers": "localhost:9092"}


def config(**settings: Any) -> StreamsConfig:
    return StreamsConfig.of(REQUIRED | {name.replace("_", "."): value for name, value in settings.items()})


@pytest.mark.parametrize("name", REQUIRED)
def test_name_and_brokers_are_required(name: str) -> None:
    with pytest.raises(InvalidSetting, match=f"{name} is required"):
        StreamsConfig.of({other: value for other, value in REQUIRED.items() if other != name})


def test_defaults_are_kafkas() -> None:
    default = config()
    assert not default.is_exactly_once
    assert default.offset_reset == "earliest"
    assert default.replication_factor == -1
    assert default.task_settings.on_deserialization_error is OnError.FAIL
    assert default.listener is None


def test_state_outlives_a_reboot(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert config().state_dir == tmp_path / "kaspar" / "streams" / "app"


def test_each_program_has_a_folder_of_its_own(tmp_path: Path) -> None:
    assert config(state_dir=tmp_path).state_dir == tmp_path / "app"


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(
        InvalidSetting, match=r"Unknown setting procesing.guarantee. Did you mean processing.guarantee\?"
    ):
        config(procesing_guarantee="exactly_once_v2")


def test_an_unknown_guarantee_is_refused_with_the_choices() -> None:
    with pytest.raises(InvalidSetting, match="must be at_least_once or exactly_once_v2, not 'exactly_once'"):
        config(processing_guarantee="exactly_once")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("fail", OnError.FAIL),
        ("continue", OnError.CONTINUE),
        ("org.apache.kafka.streams.errors.LogAndContinueExceptionHandler", OnError.CONTINUE),
        ("LogAndFailExceptionHandler", OnError.FAIL),
    ],
)
@pytest.mark.parametrize("prefix", ["", "default."])
def test_handlers_have_short_names_and_javas(prefix: str, value: str, expected: OnError) -> None:
    given = StreamsConfig.of(REQUIRED | {f"{prefix}deserialization.exception.handler": value})
    assert given.task_settings.on_deserialization_error is expected


def test_a_handler_of_ones_own_is_refused() -> None:
    with pytest.raises(InvalidSetting, match=r"must be fail or continue, not 'com\.example\.Mine'"):
        config(processing_exception_handler="com.example.Mine")


def test_serdes_are_named_or_given() -> None:
    given = config(default_key_serde="long", default_value_serde=serdes.json())
    assert given.task_settings.default_key_serde.serialize("t", 1) == bytes(7) + b"\x01"
    assert given.task_settings.default_value_serde.serialize("t", [1]) == b"[1]"


def test_clients_share_security_and_have_settings_of_their_own() -> None:
    given = StreamsConfig.of(
        REQUIRED
        | {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": 'PlainLoginModule required username="u" password="p";',
            "consumer.fetch.max.bytes": 1000,
            "producer.compression.type": "zstd",
        }
    )
    assert given.read_options["kafka.security.protocol"] == given.write_options["kafka.security.protocol"]
    assert given.connection.security.protocol == "SASL_PLAINTEXT"
    assert given.read_options["kafka.fetch.max.bytes"] == "1000"
    assert given.write_options["kafka.compression.type"] == "zstd"
    assert "kafka.compression.type" not in given.read_options


def test_what_the_program_decides_itself_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="always reads committed records"):
        StreamsConfig.of(REQUIRED | {"consumer.isolation.level": "read_uncommitted"})


def test_secrets_are_not_part_of_a_repr() -> None:
    given = StreamsConfig.of(REQUIRED | {"spark.some.password": "hidden"})
    assert "hidden" not in repr(given)


def test_settings_of_spark_are_passed_on() -> None:
    assert config(spark_sql_shuffle_partitions=3).spark == {"spark.sql.shuffle.partitions": "3"}


@pytest.mark.parametrize("value", ["here", "localhost:", ":80", "localhost:99999"])
def test_a_listener_is_host_and_port(value: str) -> None:
    with pytest.raises(InvalidSetting, match=r"application\.server must be host:port"):
        config(application_server=value)


def test_the_name_begins_topics_names() -> None:
    with pytest.raises(InvalidSetting, match="valid topic name prefix"):
        StreamsConfig.of(REQUIRED | {"application.id": "my app"})


def test_settings_without_a_meaning_here_are_accepted_with_a_word(caplog: pytest.LogCaptureFixture) -> None:
    StreamsConfig.of({**REQUIRED, "statestore.cache.max.bytes": 0, "num.standby.replicas": 1})
    assert "num.standby.replicas, statestore.cache.max.bytes" in caplog.text


def test_whether_lost_records_stop_the_program_is_a_choice() -> None:
    assert config().fail_on_data_loss
    assert not config(**{"kaspar.fail.on.data.loss": False}).fail_on_data_loss
    with pytest.raises(InvalidSetting, match="true or false"):
        config(**{"kaspar.fail.on.data.loss": "maybe"})


def test_listeners() -> None:
    assert config().metrics_listener is None
    given = config(**{"kaspar.metrics.listener": "[::1]:9100", "application.server": "localhost:7070"})
    assert (given.metrics_listener, given.listener) == ("::1:9100", ("localhost", 7070))
    with pytest.raises(InvalidSetting, match=r"kaspar\.metrics\.listener must be host:port, not 'here'"):
        config(**{"kaspar.metrics.listener": "here"})


def test_metrics_of_a_program_are_served_where_its_settings_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[object] = []
    monkeypatch.setattr("kaspar.pipelines.run", lambda pipeline, **given: served.append(given["metrics"]))
    monkeypatch.setattr("kaspar.streams.running.pipeline.check_topics", lambda topology, config: None)
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    settings = {**REQUIRED, "state.dir": tmp_path, "kaspar.metrics.listener": "localhost:9100"}
    KafkaStreams(builder.build(), settings).run()
    assert served == ["localhost:9100"]
