"""Features: what the brokers of this release support, and the levels a new cluster starts with (KIP-584)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from kaspar.metadata.image import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    GROUP_VERSION,
    METADATA_VERSION,
    TRANSACTION_VERSION,
)


class SupportedRange(NamedTuple):
    min_version: int
    max_version: int


LEVEL_OF_KAFKA_4_3: Final = 30
"""The metadata.version of Kafka 4.3, from which tools derive the release that a cluster corresponds to. It cannot be
changed, because the metadata of this cluster is not stored in Kafka's records.
"""

SUPPORTED: Final[Mapping[str, SupportedRange]] = MappingProxyType(
    {
        ELIGIBLE_LEADER_REPLICAS_VERSION: SupportedRange(0, 1),
        GROUP_VERSION: SupportedRange(0, 1),
        METADATA_VERSION: SupportedRange(LEVEL_OF_KAFKA_4_3, LEVEL_OF_KAFKA_4_3),
        TRANSACTION_VERSION: SupportedRange(0, 2),
    }
)
"""The versions that this release supports."""

NEW_LEVELS: Final[Mapping[str, int]] = MappingProxyType(
    {name: supported.max_version for name, supported in SUPPORTED.items()}
)
"""The levels of a new cluster. Eligible leader replicas (KIP-966) need one min.insync.replicas for all brokers: as in
Kafka, the value of the broker that creates the cluster becomes a cluster-wide setting, which overrides the brokers'
properties files.
"""

FIRST_LEVELS: Final[Mapping[str, int]] = MappingProxyType(
    {name: level for name, level in NEW_LEVELS.items() if name != ELIGIBLE_LEADER_REPLICAS_VERSION}
)
"""The levels of a cluster that was created by a release without features."""
