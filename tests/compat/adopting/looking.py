"""Everything that a broker shows to its clients and that must outlive a change of the broker."""

from dataclasses import dataclass
from typing import Any

from kaspar.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from kaspar.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from kaspar.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kaspar.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from kaspar.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from kaspar.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tests.compat.adopting.filling import CLASSIC, LONELY, MODERN, SETTINGS
from tests.peers.raw_client import EARLIEST, LATEST, RawClient
from tests.peers.raw_offsets import RawOffsets
from tests.peers.raw_transactions import find_coordinator

_OWN_SOURCES = frozenset({1, 2, 3, 7, 8})  # topic, broker, all brokers, subscription, group
_TRANSACTIONS = ("committed", "aborted", "open")


@dataclass(frozen=True)
class Seen:
    cluster_id: str | None
    topics: dict[str, tuple[Any, int]]
    """The id and the number of partitions of each."""
    leader_epochs: dict[tuple[str, int], int]
    records: dict[tuple[str, int], list[tuple[Any, ...]]]
    """Of every partition of every topic that is not internal: all of them, with offsets and timestamps."""
    offsets: dict[tuple[str, int], tuple[int, int]]
    settings: dict[tuple[int, str], dict[str, str | None]]
    groups: set[tuple[str, str]]
    committed: dict[str, dict[Any, Any]]
    transactions: dict[str, tuple[Any, ...]]
    security: tuple[Any, ...]
    """The ACLs, the users with credentials, and the quotas."""


def look(port: int) -> Seen:
    with RawClient(port) as client:
        metadata = client.metadata()
        assert all(topic.error_code == 0 for topic in metadata.topics)
        partitions = [
            (topic.name or "", partition.partition_index)
            for topic in metadata.topics
            if not topic.is_internal
            for partition in topic.partitions
        ]
        for transactional_id in _TRANSACTIONS:
            find_coordinator(client, transactional_id)
        return Seen(
            cluster_id=metadata.cluster_id,
            topics={topic.name or "": (topic.topic_id, len(topic.partitions)) for topic in metadata.topics},
            leader_epochs={
                (topic.name or "", partition.partition_index): partition.leader_epoch
                for topic in metadata.topics
                for partition in topic.partitions
            },
            records={
                (topic, partition): [tuple(record) for record in client.read_all(topic, partition=partition)]
                for topic, partition in partitions
            },
            offsets={
                (topic, partition): (
                    client.offset_at(topic, EARLIEST, partition=partition)[1],
                    client.offset_at(topic, LATEST, partition=partition)[1],
                )
                for topic, partition in partitions
            },
            settings={resource: _settings(client, *resource) for resource in SETTINGS},
            groups=_groups(client),
            committed={group: dict(RawOffsets(client, group).fetch_all()) for group in (CLASSIC, LONELY, MODERN)},
            transactions=_transactions(client),
            security=_security(client),
        )


def _settings(client: RawClient, kind: int, name: str) -> dict[str, str | None]:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    (result,) = client.call(DescribeConfigsRequest(resources=(resource,)), DescribeConfigsResponse).results
    assert result.error_code == 0, result
    # A broker also shows what is set for all brokers; the resource of all has it.
    sources = _OWN_SOURCES - {3} if name else _OWN_SOURCES
    return {each.name: each.value for each in result.configs if each.config_source in sources}


def _security(client: RawClient) -> tuple[Any, ...]:
    any_acl = DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    acls = client.call(any_acl, DescribeAclsResponse).resources
    users = client.call(DescribeUserScramCredentialsRequest(users=None), DescribeUserScramCredentialsResponse).results
    quotas = client.call(DescribeClientQuotasRequest(components=(), strict=False), DescribeClientQuotasResponse).entries
    return acls, users, quotas


def _groups(client: RawClient) -> set[tuple[str, str]]:
    response = client.call(ListGroupsRequest(states_filter=(), types_filter=()), ListGroupsResponse)
    assert response.error_code == 0
    return {(group.group_id, group.group_type) for group in response.groups}


def _transactions(client: RawClient) -> dict[str, tuple[Any, ...]]:
    request = DescribeTransactionsRequest(transactional_ids=_TRANSACTIONS)
    states = client.call(request, DescribeTransactionsResponse).transaction_states
    assert all(state.error_code == 0 for state in states)
    return {
        state.transactional_id: (
            state.transaction_state,
            state.producer_id,
            state.producer_epoch,
            state.transaction_timeout_ms,
            state.topics,
        )
        for state in states
    }
