"""Nodes that exist once in a cluster: the feature levels, and the next producer id."""

from collections.abc import Mapping

from kaspar.metadata.layout.json_values import encode
from kaspar.metadata.layout.store_paths import FEATURES, PRODUCER_IDS
from kaspar.metadata.store import Operation, Put


def encode_features(levels: Mapping[str, int], epoch: int) -> bytes:
    return encode({"epoch": epoch, "levels": dict(levels)})


def producer_id_change(next_producer_id: int) -> list[Operation]:
    return [Put(PRODUCER_IDS, encode(next_producer_id))]


def features_change(levels: Mapping[str, int], epoch: int) -> list[Operation]:
    return [Put(FEATURES, encode_features(levels, epoch))]
