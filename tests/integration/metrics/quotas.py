"""Scenarios of client quotas."""

import contextlib
from collections.abc import Iterator

from kaspar.base.errors import ErrorCode
from kaspar.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from kaspar.protocol.messages.api_versions import ApiVersionsRequest
from kaspar.records import Record
from tests.integration.metrics.stage import Stage, batch_of, now_ms
from tests.peers.raw_client import NAMES_TOPICS, RawClient, fetch_request

QUICK = {"quota.window.num": "2", "controller.quota.window.num": "2"}


@contextlib.contextmanager
def a_client_over_every_quota(stage: Stage) -> Iterator[None]:
    """On a broker of its own: nothing is cleaned up, which would take long under these quotas."""
    topic = "limited"
    with stage.client() as client:
        assert client.create_topic(topic) == ErrorCode.NONE
        _limit(client, producer_byte_rate=1000, consumer_byte_rate=1000, controller_mutation_rate=0.1)
        with stage.client() as writer:
            value = Record(now_ms(), b"key", b"v" * 10_000)
            assert writer.produce_batch(topic, batch_of(value)).error_code == ErrorCode.NONE
        for _ in range(2):
            with stage.client() as reader:
                reader.ask(fetch_request(topic, 0), NAMES_TOPICS)  # the second response is empty
        with stage.client() as creator:
            assert creator.create_topic("first", partitions=3) == ErrorCode.NONE
        with stage.client() as creator:
            assert creator.create_topic("second") == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        _limit(client, request_percentage=0.001)
        for _ in range(2):
            with stage.client() as busy:
                busy.ask(ApiVersionsRequest(client_software_name="test", client_software_version="1"))
        yield


def _limit(client: RawClient, **limits: float) -> None:
    everybody = (RequestEntityData(entity_type="user", entity_name=None),)
    operations = tuple(OpData(key=key, value=value, remove=False) for key, value in limits.items())
    request = AlterClientQuotasRequest(
        entries=(RequestEntryData(entity=everybody, ops=operations),), validate_only=False
    )
    (entry,) = client.call(request, AlterClientQuotasResponse).entries
    assert entry.error_code == ErrorCode.NONE
