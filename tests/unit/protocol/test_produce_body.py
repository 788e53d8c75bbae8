"""The Produce request as a client writes it: the bytes of the general codec, with the records left where they are."""

from uuid import UUID

import pytest

from kaspar.protocol.codec import write
from kaspar.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kaspar.protocol.produce import request_body

TOPICS = {"first": UUID(int=1), "second": UUID(int=2)}


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("transactional_id", [None, "tx"])
def test_request_body_is_what_the_general_codec_writes(version: int, transactional_id: str | None) -> None:
    batches = {"first": [(0, b"abc"), (7, bytes(range(200)))], "second": [(1, b"")]}
    message = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=30_000,
        topic_data=tuple(
            TopicProduceData(
                name=name,
                topic_id=TOPICS[name],
                partition_data=tuple(PartitionProduceData(index=index, records=data) for index, data in parts),
            )
            for name, parts in batches.items()
        ),
    )
    pieces = request_body(
        version,
        transactional_id,
        -1,
        30_000,
        [
            (TOPICS[name] if version >= 13 else name, [(index, memoryview(data)) for index, data in parts])
            for name, parts in batches.items()
        ],
    )
    assert b"".join(pieces) == write(message, version)
