"""Settings of brokers, groups and client-metrics subscriptions."""

from kaspar.metadata.image import Configs
from kaspar.metadata.layout.json_values import encode
from kaspar.metadata.layout.store_paths import BROKER_CONFIGS, CLIENT_METRICS_CONFIGS, GROUP_CONFIGS, resource_path
from kaspar.metadata.store import Create, Delete, Operation, Put


def config_change(folder: str, resource: str, old: Configs | None, new: Configs) -> list[Operation]:
    """The operations that change the settings of a resource. Empty settings have no node."""
    path = resource_path(folder, resource)
    if not old:
        return [Create(path, encode(dict(new)))] if new else []
    if not new:
        return [Delete(path)]
    return [Put(path, encode(dict(new)))] if dict(old) != dict(new) else []


CONFIG_FOLDERS = {
    "broker_configs": BROKER_CONFIGS,
    "group_configs": GROUP_CONFIGS,
    "client_metrics_configs": CLIENT_METRICS_CONFIGS,
}
"""The folder of each settings field of the image."""
