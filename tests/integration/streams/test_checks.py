"""What prevents a start is reported before Spark starts."""

import functools
from pathlib import Path

import pytest

from kaspar.client.admin.session import Admin
from kaspar.streams import KafkaStreams, StreamsBuilder, StreamsError
from kaspar.testing import Broker


@pytest.fixture(autouse=True)
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*arguments: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("kaspar.pipelines.sessions.new_session", start)


def program(servers: str, state_dir: Path) -> KafkaStreams:
    builder = StreamsBuilder()
    builder.stream("lines").group_by_key().count("counts")
    return KafkaStreams(
        builder.build(), {"application.id": "app", "bootstrap.servers": servers, "state.dir": state_dir}
    )


def test_missing_source_topic_is_reported_without_spark(tmp_path: Path) -> None:
    with Broker() as broker:
        for start in (KafkaStreams.run, KafkaStreams.start):
            with pytest.raises(StreamsError, match="These source topics do not exist: lines"):
                start(program(broker.bootstrap_servers, tmp_path))


def test_broker_that_does_not_respond_is_reported_without_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kaspar.streams.running.topics.Admin", functools.partial(Admin, api_timeout_s=0.3))
    with pytest.raises(StreamsError, match=r"No broker responds at localhost:1 \(Connection refused\)"):
        program("localhost:1", tmp_path).run()


def test_folder_that_cannot_be_written_is_reported_without_spark(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StreamsError, match=r"set state\.dir to another one"):
        program("localhost:1", tmp_path / "file").run()
