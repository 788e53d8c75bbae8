"""Keys in Arrow columns become partitions, by the hash of Kafka's clients."""

import pyarrow as pa
import pytest

from kaspar.records.column_writing import partition_of
from kaspar.spark.writing.arrow_columns import key_partitions

KEYS = [b"", b"a", b"21", b"foobar", b"a-little-bit-long-string"]


@pytest.mark.parametrize("kind", [pa.binary(), pa.string(), pa.large_binary(), pa.large_string()])
def test_each_key_has_its_partition(kind: pa.DataType) -> None:
    keys = pa.array([b"skipped", *KEYS], pa.binary()).cast(kind).slice(1)
    partitions = key_partitions(keys, 5)
    assert partitions.type == pa.int32()
    assert partitions.to_pylist() == [partition_of(key, 5) for key in KEYS]


def test_null_keys_have_the_partition_that_is_given_for_them() -> None:
    keys = pa.array([None, b"a", None], pa.binary())
    others = pa.array([9, 3, 4, 2], pa.int32()).slice(1)
    assert key_partitions(keys, 5, others).to_pylist() == [3, partition_of(b"a", 5), 2]
    assert key_partitions(keys.slice(0, 1), 5, others.slice(0, 1)).to_pylist() == [3]


def test_null_keys_without_a_partition_are_refused() -> None:
    keys = pa.array([None, b"a"], pa.binary())
    with pytest.raises(ValueError, match="a key is null"):
        key_partitions(keys, 5)
    with pytest.raises(ValueError, match="partition for a null key is null"):
        key_partitions(keys, 5, pa.array([None, 1], pa.int32()))


def test_no_keys_have_no_partitions() -> None:
    assert key_partitions(pa.array([], pa.binary()), 5).to_pylist() == []
