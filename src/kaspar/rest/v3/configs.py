"""The settings of one resource: of a topic, of a broker, or of all brokers together (`broker-configs`).

The operations are the same for each kind of resource, so a kind is declared once and gets the same endpoints.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from kaspar.client.admin.cluster import ClusterDescription
from kaspar.client.admin.configs import (
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    ConfigResource,
    ResourceType,
    describe_configs,
    incremental_alter_configs,
)
from kaspar.client.admin.session import Admin, accepted, raise_first
from kaspar.rest.v3 import config_data
from kaspar.rest.v3.clusters import BROKER, CLUSTER, check_broker
from kaspar.rest.v3.endpoint import Call, Endpoint, NoContent
from kaspar.rest.v3.errors import missing
from kaspar.rest.v3.names import ResourceNames
from kaspar.rest.v3.topics import TOPIC

TAG: Final = "Configs"

_UPDATE: Final = msgspec.json.Decoder(config_data.UpdateConfigRequest, strict=False)
_ALTER: Final = msgspec.json.Decoder(config_data.AlterConfigsRequest, strict=False)


def describe(admin: Admin, resource: ConfigResource) -> dict[str, ConfigEntry]:
    """Raises Refused."""
    return accepted(describe_configs(admin, [resource], include_synonyms=True)[resource])


def check_known(
    cluster_id: str, resource: ConfigResource, entries: Mapping[str, ConfigEntry], changes: Iterable[ConfigChange]
) -> None:
    """Raises RestError."""
    for change in changes:
        if change.name not in entries:
            raise missing(
                f"Config {change.name} cannot be found for {resource.type.name} {resource.name} "
                f"in cluster {cluster_id}."
            )


@dataclass(frozen=True, slots=True)
class ConfigKind:
    path: str
    owner: str
    """As it appears in the endpoints' summaries: `a topic`."""
    resource: Callable[[Call], ConfigResource]
    segments: Callable[[str], tuple[str, ...]]
    """The path segments of the URL of the list, given the name of the resource."""
    data: Callable[[ResourceNames, str, ConfigEntry], Any]
    data_type: Any
    list_type: Any
    are_all_known: bool = True
    """Whether settings without a value are listed too, so that a setting that is not listed does not exist."""

    async def list(self, call: Call) -> Any:
        names, resource = call.names(), self.resource(call)

        def ask(admin: Admin, cluster: ClusterDescription) -> Any:
            self._check(cluster, resource)
            data = [self.data(names, resource.name, each) for each in config_data.in_order(describe(admin, resource))]
            return self.list_type(metadata=names.many(*self.segments(resource.name)), data=data)

        return await call.ask_cluster(ask)

    async def get(self, call: Call) -> Any:
        names, resource, name = call.names(), self.resource(call), call.path["name"]

        def ask(admin: Admin, cluster: ClusterDescription) -> Any:
            self._check(cluster, resource)
            entries = describe(admin, resource)
            if name not in entries:
                raise missing()
            return self.data(names, resource.name, entries[name])

        return await call.ask_cluster(ask)

    async def put(self, call: Call) -> type[NoContent]:
        value = (await call.body(_UPDATE)).value
        return await self._alter(call, [ConfigChange(call.path["name"], ConfigOperation.SET, value)])

    async def reset(self, call: Call) -> type[NoContent]:
        return await self._alter(call, [ConfigChange(call.path["name"], ConfigOperation.DELETE)])

    async def alter(self, call: Call) -> type[NoContent]:
        request = await call.body(_ALTER)
        changes = config_data.changes_of(request.data)
        return await self._alter(call, changes, validate_only=bool(request.validate_only))

    async def _alter(
        self, call: Call, changes: Sequence[ConfigChange], *, validate_only: bool = False
    ) -> type[NoContent]:
        cluster_id, resource = call.cluster_id, self.resource(call)

        def ask(admin: Admin, cluster: ClusterDescription) -> None:
            self._check(cluster, resource)
            if self.are_all_known:
                check_known(cluster_id, resource, describe(admin, resource), changes)
            refused = incremental_alter_configs(admin, {resource: changes}, validate_only=validate_only)
            raise_first(refused.values())

        await call.ask_cluster(ask)
        return NoContent

    def _check(self, cluster: ClusterDescription, resource: ConfigResource) -> None:
        if resource.type is ResourceType.BROKER and resource.name:
            check_broker(cluster, int(resource.name))

    def endpoints(self) -> tuple[Endpoint, ...]:
        update, alter = config_data.UpdateConfigRequest, config_data.AlterConfigsRequest
        one, of = f"{self.path}/{{name}}", self.owner
        return (
            Endpoint("GET", self.path, self.list, f"List the settings of {of}", TAG, self.list_type),
            Endpoint("POST", f"{self.path}:alter", self.alter, f"Change settings of {of}", TAG, None, 204, alter),
            Endpoint("GET", one, self.get, f"Get a setting of {of}", TAG, self.data_type),
            Endpoint("PUT", one, self.put, f"Change a setting of {of}", TAG, None, 204, update),
            Endpoint("DELETE", one, self.reset, f"Reset a setting of {of} to its default", TAG, None, 204),
        )


def of_topic(topic: str) -> ConfigResource:
    return ConfigResource(ResourceType.TOPIC, topic)


TOPIC_CONFIGS: Final = ConfigKind(
    f"{TOPIC}/configs",
    "a topic",
    lambda call: of_topic(call.topic),
    lambda topic: ("topics", topic, "configs"),
    config_data.topic_config,
    config_data.TopicConfigData,
    config_data.TopicConfigDataList,
)
BROKER_CONFIGS: Final = ConfigKind(
    f"{BROKER}/configs",
    "a broker",
    lambda call: ConfigResource(ResourceType.BROKER, str(call.number("broker_id"))),
    lambda broker_id: ("brokers", broker_id, "configs"),
    config_data.broker_config,
    config_data.BrokerConfigData,
    config_data.BrokerConfigDataList,
)
CLUSTER_CONFIGS: Final = ConfigKind(
    f"{CLUSTER}/broker-configs",
    "all brokers",
    lambda call: ConfigResource(ResourceType.BROKER, ""),
    lambda nobody: ("broker-configs",),
    config_data.cluster_config,
    config_data.ClusterConfigData,
    config_data.ClusterConfigDataList,
    are_all_known=False,
)

ENDPOINTS: Final = (*TOPIC_CONFIGS.endpoints(), *BROKER_CONFIGS.endpoints(), *CLUSTER_CONFIGS.endpoints())
