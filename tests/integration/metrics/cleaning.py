"""Scenarios of the log cleaner."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from kaspar.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kaspar.records import Record
from tests.integration.metrics.stage import Stage, batch_of, now_ms
from tests.peers.raw_client import RawClient

UNCLEANABLE = "a partition cannot be cleaned"
COMPACTED = {"cleanup.policy": "compact", "internal.segment.bytes": "8000"}
HOUR_MS = 3_600_000
BROKER_RESOURCE = 4


def _fill(client: RawClient, topic: str, *, timestamp: int | None = None) -> None:
    for number in range(60):
        when = timestamp or now_ms()
        records = [Record(when, b"key-%d" % (number % 50 * 40 + key), b"%d" % number) for key in range(40)]
        assert client.produce_batch(topic, batch_of(*records)).error_code == 0


@contextlib.contextmanager
def cleaner_limit(client: RawClient, bytes_per_second: int) -> Iterator[None]:
    def alter(operation: int, value: str | None) -> None:
        name = "log.cleaner.io.max.bytes.per.second"
        change = AlterableConfig(name=name, config_operation=operation, value=value)
        resource = AlterConfigsResource(resource_type=BROKER_RESOURCE, resource_name="", configs=(change,))
        request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
        (response,) = client.call(request, IncrementalAlterConfigsResponse).responses
        assert response.error_code == 0, response.error_message

    alter(0, str(bytes_per_second))
    yield
    alter(1, None)


@contextlib.contextmanager
def a_log_to_clean(stage: Stage) -> Iterator[None]:
    """One that is overdue, and slowly enough that it takes more than a second: its delay is seen meanwhile."""
    overdue = {**COMPACTED, "min.cleanable.dirty.ratio": "0.01", "max.compaction.lag.ms": "1"}
    with stage.client() as client, cleaner_limit(client, 60_000), stage.topic(overdue) as (_, topic):
        _fill(client, topic, timestamp=now_ms() - HOUR_MS)
        yield


@contextlib.contextmanager
def a_log_that_cannot_be_cleaned(stage: Stage) -> Iterator[None]:
    stage.broker.expect_error(UNCLEANABLE)
    with stage.topic({**COMPACTED, "min.cleanable.dirty.ratio": "0.5", "min.compaction.lag.ms": "0"}) as (
        client,
        topic,
    ):
        (first,) = _folders_of(stage, topic)
        assert client.produce_batch(topic, batch_of()).error_code == 0
        with (first / f"{0:020}.log").open("r+b") as file:
            file.seek(30)
            file.write(b"damage")
        _fill(client, topic)
        yield


def _folders_of(stage: Stage, topic: str) -> list[Path]:
    return [path for folder in stage.broker.folder.iterdir() if folder.is_dir() for path in folder.glob(f"{topic}-*")]
