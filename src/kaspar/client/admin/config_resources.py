"""Lists the resources that have settings (KIP-1142; before that only client-metrics subscriptions, KIP-714)."""

from collections.abc import Collection

from kaspar.client.admin.configs import ConfigResource, ResourceType
from kaspar.client.admin.session import Admin, refuse
from kaspar.protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse


def list_config_resources(admin: Admin, types: Collection[ResourceType] = ()) -> list[ConfigResource]:
    """List the resources of these types, or of all. Groups and client-metrics subscriptions are listed only if they
    have their own settings. A broker before 4.1 lists only client-metrics subscriptions. Raises Refused.
    """
    response = admin.ask_any(
        "listConfigResources",
        ListConfigResourcesRequest(resource_types=tuple(types)),
        ListConfigResourcesResponse,
    )
    refuse(response.error_code)
    found = [ConfigResource(ResourceType(each.resource_type), each.resource_name) for each in response.config_resources]
    return [each for each in found if not types or each.type in types]
