"""Small honest batches are checked on the event loop; whatever could take longer is not, however small it looks."""

import random

import pytest

from kaspar.records import Codec, Record, build_batch, check_cost_ns, checks_inline
from kaspar.records.core import checking
from tests.unit.records.batches import NOW_MS, batch_of, compressed, some_records, with_fields


@pytest.mark.parametrize("codec", Codec)
def test_small_batch_is_checked_inline(codec: Codec) -> None:
    batch = build_batch(some_records(3), codec=codec)
    assert checks_inline(batch, 0, len(batch))


@pytest.mark.skipif(not checking.IS_COMPILED, reason="the interpreted form takes longer")
def test_megabyte_of_usual_records_is_checked_inline() -> None:
    batch = build_batch([Record(NOW_MS, b"key", b"v" * 1000)] * 1000)
    assert checks_inline(batch, 0, len(batch))


def test_batch_of_very_many_records_is_not() -> None:
    batch = build_batch([Record(NOW_MS, None, None)] * 80_000)
    assert not checks_inline(batch, 0, len(batch))


@pytest.mark.parametrize(("codec", "size"), [(Codec.GZIP, 5_000), (Codec.LZ4, 150_000), (Codec.SNAPPY, 250_000)])
def test_compressed_batch_that_could_be_a_bomb_is_not(codec: Codec, size: int) -> None:
    assert not checks_inline(batch_of(bytes(size), attributes=codec), 0, 61 + size)


@pytest.mark.skipif(not checking.IS_COMPILED, reason="the interpreted form takes longer")
def test_megabyte_of_usual_lz4_is_tried_inline() -> None:
    noise = random.Random(1).randbytes(600)
    batch = build_batch([Record(NOW_MS, b"key", noise + bytes(400))] * 1000, codec=Codec.LZ4)
    assert checks_inline(batch, 0, len(batch))


def test_tiny_zstd_bomb_is_not() -> None:
    batch = batch_of(compressed(Codec.ZSTD, [bytes(1_000_000)] * 20), attributes=Codec.ZSTD)
    assert len(batch) < 2_000
    assert not checks_inline(batch, 0, len(batch))


@pytest.mark.parametrize("size", [0, 1, 22, 60])
def test_what_is_too_short_to_be_a_batch_costs_next_to_nothing(size: int) -> None:
    assert check_cost_ns(bytes(100), 3, 3 + size) < 10_000


@pytest.mark.parametrize("attributes", [5, 6, 7])
def test_unknown_codec_is_refused_inline(attributes: int) -> None:
    batch = with_fields(build_batch(some_records()), attributes=attributes)
    assert checks_inline(batch, 0, len(batch))


def test_record_count_that_lies_makes_no_cost_of_its_own() -> None:
    batch = with_fields(build_batch(some_records()), count=0x7FFF_FFFF)
    assert checks_inline(batch, 0, len(batch))
