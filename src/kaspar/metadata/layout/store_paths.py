"""The paths of nodes."""

from typing import Final
from urllib.parse import quote, unquote

CLUSTER_ID = "/cluster/id"
FENCE = "/controller/fence"
CONTROLLER_SEAT = "/controller/active"
BROKER_IDS = "/brokers/ids"
BROKER_INCARNATIONS = "/brokers/incarnations"
BROKER_EPOCHS = "/brokers/epochs"
BROKER_DIRECTORIES = "/brokers/directories"
TOPICS = "/topics"
DELETED = "/deleted"
BROKER_CONFIGS = "/configs/brokers"
GROUP_CONFIGS = "/configs/groups"
CLIENT_METRICS_CONFIGS = "/configs/client_metrics"
SCRAM = "/scram"
TOKENS = "/tokens"
CLIENT_QUOTAS = "/quotas"
PRODUCER_IDS = "/producer_ids"
FEATURES = "/features"
ACLS = "/acls"
GENERATED_IDS = "/generated_ids"
MOVING = "/moving"
ADOPTED = "/adopted"
LATER_FOLDERS: Final = (BROKER_DIRECTORIES, BROKER_INCARNATIONS, SCRAM, TOKENS, CLIENT_QUOTAS, ACLS)
"""Folders that stores of earlier releases do not have."""
_DEFAULT_RESOURCE = "<default>"


def resource_path(folder: str, resource: str) -> str:
    """The path of a resource. Group names may contain any character, so names are URL-encoded; the empty name is
    replaced.
    """
    return f"{folder}/{quote(resource, safe='') or _DEFAULT_RESOURCE}"


def resource_name(node_name: str) -> str:
    return "" if node_name == _DEFAULT_RESOURCE else unquote(node_name)
