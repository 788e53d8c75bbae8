"""Settings that the cluster stores for all its brokers, and that have to change when the cluster grows.

With eligible leader replicas (KIP-966) `min.insync.replicas` is such a setting: the value in the brokers' files no
longer has an effect.
"""

from typing import Final

from kaspar.base.errors import Refused
from kaspar.client.admin.configs import (
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ResourceType,
    describe_configs,
    incremental_alter_configs,
)
from kaspar.client.admin.session import Admin
from kaspar.supervisor.readiness import Contact

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
_ALL_BROKERS: Final = ConfigResource(ResourceType.BROKER, "")


def keep_min_insync_replicas(contact: Contact, value: str) -> None:
    """Set this value in the cluster, if the cluster stores one. Raises Refused."""
    with Admin(contact.address, security=contact.security) as admin:
        found = describe_configs(admin, [_ALL_BROKERS])[_ALL_BROKERS]
        if isinstance(found, Refused):
            raise found
        kept = found.get(MIN_INSYNC_REPLICAS)
        if kept is not None and kept.value != value:
            change = ConfigChange(MIN_INSYNC_REPLICAS, ConfigOperation.SET, value)
            for refusal in incremental_alter_configs(admin, {_ALL_BROKERS: [change]}).values():
                raise refusal
