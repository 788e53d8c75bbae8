"""The first nodes of a new store."""

from collections.abc import Mapping

from kaspar.base.ids import BrokerId
from kaspar.metadata.image import CLUSTER_DEFAULT, Configs
from kaspar.metadata.layout.cluster_nodes import encode_features
from kaspar.metadata.layout.controller_nodes import encode_fence
from kaspar.metadata.layout.json_values import encode
from kaspar.metadata.layout.store_paths import (
    ACLS,
    ADOPTED,
    BROKER_CONFIGS,
    BROKER_DIRECTORIES,
    BROKER_EPOCHS,
    BROKER_IDS,
    BROKER_INCARNATIONS,
    CLIENT_METRICS_CONFIGS,
    CLIENT_QUOTAS,
    DELETED,
    FEATURES,
    FENCE,
    GROUP_CONFIGS,
    PRODUCER_IDS,
    SCRAM,
    TOKENS,
    TOPICS,
    resource_path,
)
from kaspar.metadata.store import Create


def bootstrap_nodes() -> list[Create]:
    """The nodes that a new store needs before a controller can claim it."""
    return [
        Create("/cluster"),
        Create("/controller"),
        Create(FENCE, encode_fence(BrokerId(-1), 0, 0)),
        Create("/brokers"),
        Create(BROKER_IDS),
        Create(BROKER_INCARNATIONS),
        Create(BROKER_EPOCHS, encode({})),
        Create(BROKER_DIRECTORIES),
        Create(TOPICS),
        Create(DELETED),
        Create("/configs"),
        Create(BROKER_CONFIGS),
        Create(GROUP_CONFIGS),
        Create(CLIENT_METRICS_CONFIGS),
        Create(SCRAM),
        Create(TOKENS),
        Create(CLIENT_QUOTAS),
        Create(PRODUCER_IDS, encode(0)),
        Create(ACLS),
    ]


def first_features(levels: Mapping[str, int]) -> Create:
    """The node of the feature levels. Stores of releases without features do not have it."""
    return Create(FEATURES, encode_features(levels, 0))


def adopted_from(metadata_log: str) -> Create:
    return Create(ADOPTED, encode({"metadata_log": metadata_log}))


def first_configs(configs: Configs) -> Create:
    """The node with the cluster-wide settings of a new cluster."""
    return Create(resource_path(BROKER_CONFIGS, CLUSTER_DEFAULT), encode(dict(configs)))
