"""The topic `_schemas` itself: one compacted partition. It is created if missing, and otherwise checked as in
Confluent's KafkaStore.
"""

from typing import Final, NamedTuple
from uuid import UUID

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.base.log import get_log
from kaspar.client.async_client import AsyncClient
from kaspar.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kaspar.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kaspar.protocol.messages.metadata import MetadataResponseTopic

log = get_log(__name__)

_CLEANUP_POLICY: Final = "cleanup.policy"
_COMPACT: Final = "compact"
_TOPIC_RESOURCE: Final = 2


class UnusableTopic(KasparError):
    """The topic cannot hold schemas. An operator must change it or configure another one."""


class TopicTerms(NamedTuple):
    name: str
    replication_factor: int
    """The desired number of replicas. With fewer brokers, each of them gets a replica."""
    skip_validation: bool = False
    """Use the topic as it is; never create it."""


async def ensure_topic(client: AsyncClient, terms: TopicTerms) -> UUID:
    """The topic's id, or zero if the brokers do not support topic ids. Raises UnusableTopic, Refused and OSError."""
    found = await find_topic(client, terms.name)
    if found is None:
        if terms.skip_validation:
            raise Refused(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"the topic {terms.name} does not exist and was not created: kafkastore.topic.skip.validation is set",
            )
        if (topic_id := await _create(client, terms)) is not None:
            return topic_id
        found = await find_topic(client, terms.name)
        if found is None:  # the broker that responded does not know the new topic yet
            raise Refused(
                ErrorCode.LEADER_NOT_AVAILABLE, f"the topic {terms.name} was created but is not in the metadata yet"
            )
    if not terms.skip_validation:
        await _check(client, terms, found)
    return found.topic_id


async def find_topic(client: AsyncClient, name: str) -> MetadataResponseTopic | None:
    """Returns None if the topic does not exist. Raises Refused and OSError."""
    metadata = await client.refresh_metadata([name])
    (topic,) = metadata.topics
    if topic.error_code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID):
        return None
    if topic.error_code not in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
        code = ErrorCode(topic.error_code)
        raise Refused(code, f"metadata of the topic {name}: {code.name}")
    return topic


async def _create(client: AsyncClient, terms: TopicTerms) -> UUID | None:
    """Returns None if another instance has created the topic first."""
    brokers = len((await client.refresh_metadata([])).brokers)
    factor = min(brokers, terms.replication_factor)
    if factor < terms.replication_factor:
        log.warning(
            "creating the schema topic with fewer replicas than desired: there are not enough brokers",
            topic=terms.name,
            replicas=factor,
            desired=terms.replication_factor,
        )
    topic = CreatableTopic(
        name=terms.name,
        num_partitions=1,
        replication_factor=factor,
        assignments=(),
        configs=(CreatableTopicConfig(name=_CLEANUP_POLICY, value=_COMPACT),),
    )
    response = await client.request_controller(
        CreateTopicsRequest(topics=(topic,), timeout_ms=int(client.timeout_s * 1000)), CreateTopicsResponse
    )
    (created,) = response.topics
    if created.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
        return None
    if created.error_code != ErrorCode.NONE:
        code = ErrorCode(created.error_code)
        raise Refused(code, f"creating the topic {terms.name}: {created.error_message or code.name}")
    log.info("created the schema topic", topic=terms.name, replicas=factor)
    return created.topic_id


async def _check(client: AsyncClient, terms: TopicTerms, topic: MetadataResponseTopic) -> None:
    if len(topic.partitions) != 1:
        raise UnusableTopic(
            f"The schema topic {terms.name} should have only 1 partition but has {len(topic.partitions)}"
        )
    if (replicas := len(topic.partitions[0].replica_nodes)) < terms.replication_factor:
        log.warning(
            "the schema topic has fewer replicas than desired",
            topic=terms.name,
            replicas=replicas,
            desired=terms.replication_factor,
        )
    policy = await _cleanup_policy(client, terms.name)
    if policy is not None and policy != _COMPACT:
        raise UnusableTopic(
            f"The retention policy of the schema topic {terms.name} is incorrect. Expected cleanup.policy to be "
            f"'compact' but it is {policy}"
        )


async def _cleanup_policy(client: AsyncClient, topic: str) -> str | None:
    """None if this client has no permission to read it; then it is assumed to be correct."""
    asked = DescribeConfigsResource(
        resource_type=_TOPIC_RESOURCE, resource_name=topic, configuration_keys=(_CLEANUP_POLICY,)
    )
    response = await client.request(DescribeConfigsRequest(resources=(asked,)), DescribeConfigsResponse)
    (found,) = response.results
    if found.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        log.warning("the cleanup policy of the schema topic was not checked: no permission to read it", topic=topic)
        return None
    if found.error_code != ErrorCode.NONE:
        code = ErrorCode(found.error_code)
        raise Refused(code, f"reading the settings of the topic {topic}: {found.error_message or code.name}")
    return next((each.value for each in found.configs if each.name == _CLEANUP_POLICY), None)
