"""The APIs that brokers serve, with their versions (KIP-35)."""

from dataclasses import dataclass

from kaspar.client.admin.session import Admin, refuse
from kaspar.client.core import API_VERSIONS_REQUEST
from kaspar.protocol.messages.api_versions import ApiVersionsResponse


@dataclass(frozen=True, slots=True)
class ServedApi:
    key: int
    """The API's key. This client may not know the API."""
    first: int
    last: int


def describe_api_versions(admin: Admin, broker_id: int) -> list[ServedApi]:
    """All APIs that the broker serves to clients, by key. Refused if the broker does not respond."""
    response = admin.ask_broker("apiVersions", broker_id, API_VERSIONS_REQUEST, ApiVersionsResponse)
    refuse(response.error_code)
    served = (ServedApi(each.api_key, each.min_version, each.max_version) for each in response.api_keys)
    return sorted(served, key=lambda api: api.key)
