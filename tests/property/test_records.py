"""Batches against independent implementations, and the compiled core against its interpreted form.

kafka-python and aiokafka each build and read batches in their own way: what one side writes the other must read. No
example has a deadline, since the machine may be busy.
"""

import contextlib
import importlib
import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

import lz4.frame
import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

from kaspar.base.compiled import load
from kaspar.base.errors import MalformedBytes, Refused
from kaspar.records import Codec, Record, build_batch, check_batch, check_cost_ns, iter_records, recompress, set_crc
from kaspar.records.batch import iter_headers
from kaspar.records.core import checking as loaded_core
from kaspar.records.inflate import inflate
from tests.unit.protocol.mutation import mutate

interpreted = importlib.import_module("kaspar.records.core.checking")
interpreted_reading = importlib.import_module("kaspar.records.core.reading")
loaded_reading = load("kaspar.records.core.reading")

Content = tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]

OPTIONAL_BYTES = st.none() | st.binary(max_size=300)
HEADERS = st.lists(st.tuples(st.text(max_size=20), st.none() | st.binary(max_size=50)), max_size=4).map(tuple)
TIMESTAMPS = st.integers(min_value=0, max_value=1 << 45)
ONE_RECORD = st.builds(Record, TIMESTAMPS, OPTIONAL_BYTES, OPTIONAL_BYTES, HEADERS, st.just(-1))
RECORDS = st.lists(ONE_RECORD, min_size=1, max_size=20)
CODECS = st.sampled_from(Codec)


def contents(records: list[Record]) -> list[Content]:
    return [(record.timestamp, record.key, record.value, record.headers) for record in records]


@settings(deadline=None)
@given(RECORDS, CODECS)
def test_what_is_built_checks_and_reads_back(records: list[Record], codec: Codec) -> None:
    batch = build_batch(records, codec=codec)
    checked = check_batch(batch, 0, len(batch))
    timestamps = [record.timestamp for record in records]
    assert (checked.min_timestamp, checked.max_timestamp) == (min(timestamps), max(timestamps))
    assert checked.delta_of_max_timestamp == timestamps.index(max(timestamps))
    assert checked.has_keyless == any(record.key is None for record in records)
    found = list(iter_records(batch))
    assert contents(found) == contents(records)
    assert [record.offset for record in found] == list(range(len(records)))


@settings(deadline=None)
@given(RECORDS, CODECS)
def test_kafka_python_reads_what_is_built(records: list[Record], codec: Codec) -> None:
    (batch,) = MemoryRecords(bytes(build_batch(records, base_offset=500, codec=codec)))
    assert batch.validate_crc()
    found = list(batch)
    assert [(one.timestamp, one.key, one.value, tuple(one.headers)) for one in found] == contents(records)
    assert [one.offset for one in found] == list(range(500, 500 + len(records)))


@settings(deadline=None)
@given(RECORDS, CODECS)
def test_aiokafka_reads_what_is_built(records: list[Record], codec: Codec) -> None:
    batch = AiokafkaBatch(bytes(build_batch(records, codec=codec)))
    assert batch.validate_crc()
    assert [(one.timestamp, one.key, one.value, tuple(one.headers)) for one in batch] == contents(records)


@pytest.mark.parametrize("builder", [KafkaPythonBuilder, AiokafkaBuilder])
@settings(deadline=None)
@given(records=RECORDS, codec=CODECS, target=CODECS)
def test_what_other_clients_build_checks_and_reads_back(
    builder: Callable[..., Any], records: list[Record], codec: Codec, target: Codec
) -> None:
    building = builder(2, int(codec), False, 4000, 3, 17, 1 << 30)
    for offset, record in enumerate(records):
        headers = [(name, value) for name, value in record.headers]
        building.append(offset, record.timestamp, record.key, record.value, headers)
    batch = bytes(building.build())
    checked = check_batch(batch, 0, len(batch))
    assert (checked.count, checked.producer_id, checked.producer_epoch, checked.base_sequence) == (
        len(records),
        4000,
        3,
        17,
    )
    assert checked.max_timestamp == checked.header_max_timestamp == max(record.timestamp for record in records)
    assert contents(list(iter_records(batch))) == contents(records)
    assert contents(list(iter_records(recompress(batch, checked, target)))) == contents(records)


def verdict(core: ModuleType, batch: bytes | bytearray) -> object:
    """All that a form of the core says of a batch, in a form that can be compared."""
    try:
        checked = core.check_batch(batch, 0, len(batch))
    except Refused as refused:
        return refused.code, refused.message
    names = [name for name in dir(checked) if not name.startswith("_")]
    return [(name, getattr(checked, name)) for name in names]


def readable(core: ModuleType, batch: bytes | bytearray) -> object:
    """What a form of the core reads as records."""
    found: list[Record] = []
    try:
        for position, header in iter_headers(batch, 0, len(batch)):
            reader = core.RecordReader(header.base_offset, header.base_timestamp, None)
            payload = b"".join(inflate(header.codec, bytes(batch[position + 61 : position + header.size])))
            end, wanted = core.whole_records(payload)
            found.append(Record(end, None, None, (), wanted))
            found += reader.read(payload[:end] if end >= 0 else payload, header.count)
    except (MalformedBytes, Refused) as error:
        return found, str(error)
    return found


@st.composite
def mutated_batches(draw: st.DrawFn) -> bytearray:
    """Batches with some bytes changed, cut out or put in, and mostly a CRC that fits, so that the walk is reached."""
    batch = build_batch(draw(RECORDS), codec=draw(st.just(Codec.NONE) | CODECS))
    for _ in range(draw(st.integers(0, 4))):
        position = draw(st.integers(min_value=21, max_value=len(batch) - 1))
        change = draw(st.sampled_from(["flip", "set", "insert", "delete"]))
        if change == "flip":
            batch[position] ^= 1 << draw(st.integers(0, 7))
        elif change == "set":
            batch[position] = draw(st.sampled_from([0x00, 0x01, 0x7F, 0x80, 0xFF]))
        elif change == "insert":
            batch[position:position] = draw(st.binary(min_size=1, max_size=12))
        elif len(batch) > 80:
            del batch[position : position + draw(st.integers(1, 12))]
    if draw(st.integers(0, 9)):
        batch[8:12] = (len(batch) - 12).to_bytes(4)
        set_crc(batch, 0)
    return batch


@pytest.fixture(scope="module")
def compiled() -> ModuleType:
    if not loaded_core.IS_COMPILED:
        pytest.skip("there is no compiled form here")
    return loaded_core


@settings(max_examples=500, deadline=None)
@given(batch=mutated_batches())
def test_both_forms_agree_on_mutated_batches(compiled: ModuleType, batch: bytearray) -> None:
    assert verdict(compiled, batch) == verdict(interpreted, batch)
    assert readable(loaded_reading, batch) == readable(interpreted_reading, batch)
    assert check_cost_ns(batch, 0, len(batch)) > 0


@settings(max_examples=200, deadline=None)
@given(payload=st.binary(max_size=200), count=st.integers(1, 3), base_timestamp=st.integers(-(1 << 63), (1 << 63) - 1))
def test_both_forms_agree_on_random_records(
    compiled: ModuleType, payload: bytes, count: int, base_timestamp: int
) -> None:
    walks = [core.RecordWalk(count, base_timestamp) for core in (compiled, interpreted)]
    states = []
    for walk in walks:
        walk.feed(payload[:50])
        walk.feed(payload[50:])
        walk.finish()
        states.append([getattr(walk, name) for name in ("problem", "index", "min_timestamp", "max_timestamp")])
        states[-1] += [walk.delta_of_max_timestamp, walk.has_keyless, walk.explain()]
    assert states[0] == states[1]


@settings(deadline=None)
@given(batch=st.binary(max_size=200))
def test_both_forms_agree_on_random_bytes(compiled: ModuleType, batch: bytes) -> None:
    assert verdict(compiled, batch) == verdict(interpreted, batch)
    assert readable_or_malformed(compiled, batch) == readable_or_malformed(interpreted, batch)


def readable_or_malformed(core: ModuleType, batch: bytes) -> object:
    try:
        return repr(core.read_header(batch, 0))
    except MalformedBytes as error:
        return str(error)


@settings(max_examples=200, deadline=None)
@given(records=RECORDS, codec=CODECS, data=st.data())
def test_torn_batch_never_checks(records: list[Record], codec: Codec, data: st.DataObject) -> None:
    batch = build_batch(records, codec=codec)
    size = data.draw(st.integers(0, len(batch) - 1))
    torn = batch[:size]
    with pytest.raises(Refused):
        check_batch(torn, 0, size)
    if size > 61:  # and neither when its length and CRC are made to fit
        torn[8:12] = (size - 12).to_bytes(4)
        set_crc(torn, 0)
        with pytest.raises(Refused):
            check_batch(torn, 0, size)


@settings(max_examples=500, deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=4), st.integers(1, 3000), st.randoms(use_true_random=False))
def test_lz4_is_inflated_block_by_block_as_the_library_inflates_whole_frames(
    words: list[bytes], repetitions: int, rng: random.Random
) -> None:
    stream = lz4.frame.LZ4FrameCompressor(block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False)
    frame = stream.begin() + stream.compress(b"".join(words) * repetitions) + stream.flush()
    header, blocks = frame[:7], frame[7:]
    for damaged in (frame, header + mutate(blocks, rng), header + mutate(blocks, rng)):
        with contextlib.suppress(EmptyStoredBlock):
            assert inflated_or_nothing(damaged) == inflated_whole_or_nothing(damaged)


class EmptyStoredBlock(Exception):
    """Such a block the library takes, and Kafka's reader does not."""


def inflated_or_nothing(frame: bytes) -> bytes | None:
    try:
        return b"".join(inflate(Codec.LZ4, frame))
    except Refused as refused:
        if "empty stored block" in refused.message:
            raise EmptyStoredBlock from refused
        return None


def inflated_whole_or_nothing(frame: bytes) -> bytes | None:
    library = lz4.frame.LZ4FrameDecompressor()
    try:
        data = library.decompress(frame)
    except RuntimeError:
        return None
    return data if library.eof and not library.unused_data else None
