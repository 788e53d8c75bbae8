"""The settings of many resources at once: of all topics, of all brokers, and the defaults of a new topic."""

from typing import Final

import msgspec
from starlette.responses import Response

from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.admin.cluster import ClusterDescription
from kaspar.client.admin.configs import (
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourceType,
    describe_configs,
    incremental_alter_configs,
)
from kaspar.client.admin.created_topic import create_topic
from kaspar.client.admin.creation import NewTopic
from kaspar.client.admin.session import Admin
from kaspar.client.admin.topics import list_topics
from kaspar.rest.errors import from_refusal
from kaspar.rest.http import json_response, no_content
from kaspar.rest.v3.clusters import CLUSTER
from kaspar.rest.v3.config_data import (
    AlterTopicsConfigsRequest,
    AlterTopicsConfigsResponse,
    BrokerConfigDataList,
    TopicConfigDataList,
    TopicFailure,
    broker_config,
    changes_of,
    in_order,
    topic_config,
)
from kaspar.rest.v3.configs import TAG, check_known, describe, of_topic
from kaspar.rest.v3.endpoint import Call, Endpoint
from kaspar.rest.v3.topics import TOPIC
from kaspar.web.openapi import ResponseSpec

_ALTER: Final = msgspec.json.Decoder(AlterTopicsConfigsRequest, strict=False)


async def _list_of_topics(call: Call) -> TopicConfigDataList:
    names = call.names()

    def ask(admin: Admin) -> TopicConfigDataList:
        found = describe_configs(admin, list(map(of_topic, list_topics(admin))), include_synonyms=True)
        data = [
            topic_config(names, resource.name, entry)
            for resource, entries in sorted(found.items(), key=lambda each: each[0].name)
            if not isinstance(entries, Refused)  # deleted meanwhile
            for entry in in_order(entries)
        ]
        return TopicConfigDataList(metadata=names.many("topics", "-", "configs"), data=data)

    return await call.ask(ask)


async def _alter_of_topics(call: Call) -> Response:
    """A topic that is rejected does not fail the others, but a setting that does not exist fails the whole request."""
    cluster_id, request = call.cluster_id, await call.body(_ALTER)
    changes = {of_topic(each.topic_name): changes_of(each.configs) for each in request.data}
    validate_only = bool(request.validate_only)

    def ask(admin: Admin) -> dict[ConfigResource, Refused]:
        refused: dict[ConfigResource, Refused] = {}
        for resource, entries in describe_configs(admin, list(changes)).items():
            if isinstance(entries, Refused):
                refused[resource] = entries
            else:
                check_known(cluster_id, resource, entries, changes[resource])
        left = {resource: each for resource, each in changes.items() if resource not in refused}
        return refused | incremental_alter_configs(admin, left, validate_only=validate_only) if left else refused

    failures = []
    for resource, refusal in (await call.ask(ask)).items():
        error = from_refusal(refusal)
        failures.append(TopicFailure(resource.name, error.kind.code, error.message))
    return json_response(AlterTopicsConfigsResponse(failures), status=207) if failures else no_content()


async def _list_of_brokers(call: Call) -> BrokerConfigDataList:
    names = call.names()

    def ask(admin: Admin, cluster: ClusterDescription) -> BrokerConfigDataList:
        data = []
        for node in cluster.nodes:
            broker_id = str(node.node_id)
            entries = describe(admin, ConfigResource(ResourceType.BROKER, broker_id))
            data += [broker_config(names, broker_id, entry) for entry in in_order(entries)]
        return BrokerConfigDataList(metadata=names.many("brokers", "-", "configs"), data=data)

    return await call.ask_cluster(ask)


async def _list_defaults(call: Call) -> TopicConfigDataList:
    """The settings that a new topic with this name would have. The topic may exist."""
    names, topic = call.names(), call.topic

    def ask(admin: Admin) -> TopicConfigDataList:
        try:
            configs = create_topic(admin, NewTopic(topic), validate_only=True).configs or ()
        except Refused as refused:
            if refused.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
            configs = tuple(map(_inherited, describe(admin, of_topic(topic)).values()))
        data = [topic_config(names, topic, each) for each in sorted(configs, key=lambda each: each.name)]
        return TopicConfigDataList(metadata=names.many("topics", topic, "default-configs"), data=data)

    return await call.ask(ask)


def _inherited(entry: ConfigEntry) -> ConfigEntry:
    """The entry without the value that is set for the topic itself."""
    others = tuple(each for each in entry.synonyms if each.source is not ConfigSource.DYNAMIC_TOPIC_CONFIG)
    if not others:
        return entry
    value, source = others[0].value, others[0].source
    return ConfigEntry(entry.name, value, source, entry.is_sensitive, entry.is_read_only, others)


ENDPOINTS: Final = (
    Endpoint(
        "GET",
        f"{CLUSTER}/topics/-/configs",
        _list_of_topics,
        "List the settings of all topics",
        TAG,
        TopicConfigDataList,
    ),
    Endpoint(
        "POST",
        f"{CLUSTER}/topics/-/configs:alter",
        _alter_of_topics,
        "Change settings of several topics",
        TAG,
        None,
        204,
        AlterTopicsConfigsRequest,
        more_responses=(("207", ResponseSpec("The topics that were rejected", AlterTopicsConfigsResponse)),),
    ),
    Endpoint(
        "GET",
        f"{CLUSTER}/brokers/-/configs",
        _list_of_brokers,
        "List the settings of every broker",
        TAG,
        BrokerConfigDataList,
    ),
    Endpoint(
        "GET",
        f"{TOPIC}/default-configs",
        _list_defaults,
        "List the default settings of topics",
        TAG,
        TopicConfigDataList,
    ),
)
