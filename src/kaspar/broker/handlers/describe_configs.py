"""DescribeConfigs: the configs of topics, brokers, broker loggers, groups and client-metrics subscriptions."""

from collections.abc import Mapping, Sequence

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId
from kaspar.broker import log_levels
from kaspar.broker.services import CurrentSettings
from kaspar.config import BrokerSettings, ConfigEntry, ConfigSource, ConfigType
from kaspar.controller.events import ResourceType
from kaspar.metadata.images import ImageSource
from kaspar.metadata.topic_names import check_topic_name
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

_MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent to "
    "an incompatible broker. See the broker logs for more details."
)


class DescribeConfigsHandler:
    def __init__(self, broker_id: BrokerId, images: ImageSource, settings: CurrentSettings) -> None:
        self._broker_id = broker_id
        self._images = images
        self._settings = settings
        self._last_topic: tuple[BrokerSettings, Mapping[str, str], Sequence[ConfigEntry]] | None = None

    def __call__(self, context: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        return DescribeConfigsResponse(results=tuple(self._describe(request, each) for each in request.resources))

    def _describe(self, request: DescribeConfigsRequest, resource: DescribeConfigsResource) -> DescribeConfigsResult:
        try:
            entries = self._entries(resource)
        except Refused as refused:
            return DescribeConfigsResult(
                error_code=refused.code,
                error_message=refused.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=(),
            )
        wanted = set(resource.configuration_keys or ())
        return DescribeConfigsResult(
            error_message="",
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=tuple(_result(request, entry) for entry in entries if not wanted or entry.name in wanted),
        )

    def _entries(self, resource: DescribeConfigsResource) -> Sequence[ConfigEntry]:
        name, image, settings = resource.resource_name, self._images.current, self._settings.settings
        match resource.resource_type:
            case ResourceType.TOPIC:
                check_topic_name(name)
                if name not in image.topics:
                    raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
                return self._topic_entries(settings, image.topics[name].configs)
            case ResourceType.BROKER:
                if not name:
                    return settings.describe_cluster_default()
                self._check_broker_id(name, "or empty string, but")
                return settings.describe_broker()
            case ResourceType.BROKER_LOGGER:
                if not name:
                    raise _invalid("Broker id must not be empty")
                self._check_broker_id(name, "but")
                return [_logger_entry(logger, level) for logger, level in log_levels.levels().items()]
            case ResourceType.GROUP:
                if not name:
                    raise _invalid("Group name must not be empty")
                return settings.describe_group(image.group_configs.get(name, {}))
            case ResourceType.CLIENT_METRICS:
                if not name:
                    raise _invalid("Client metrics subscription name must not be empty")
                return settings.describe_client_metrics(image.client_metrics_configs.get(name, {}))
            case _:
                raise _invalid(_MALFORMED)

    def _topic_entries(self, settings: BrokerSettings, configs: Mapping[str, str]) -> Sequence[ConfigEntry]:
        """The configs of a topic. Those of the last topic are cached, because most topics of a cluster have the same
        overrides, or none, and monitoring requests all topics. Changes of the broker's settings replace `settings`.
        """
        known = self._last_topic
        if known is None or known[0] is not settings or known[1] != configs:
            known = self._last_topic = settings, configs, settings.describe_topic(configs)
        return known[2]

    def _check_broker_id(self, name: str, otherwise: str) -> None:
        try:
            broker_id = int(name)
        except ValueError:
            raise _invalid(f"Broker id must be an integer, but it is: {name}") from None
        if broker_id != self._broker_id:
            raise _invalid(f"Unexpected broker id, expected {self._broker_id} {otherwise} received {name}")


def _logger_entry(name: str, level: str) -> ConfigEntry:
    source = ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG
    return ConfigEntry(name, level, source, False, False, (), ConfigType.UNKNOWN, "")


def _result(request: DescribeConfigsRequest, entry: ConfigEntry) -> DescribeConfigsResourceResult:
    synonyms = entry.synonyms if request.include_synonyms else ()
    is_logger = entry.source is ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=tuple(
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in synonyms
        ),
        config_type=entry.type,
        documentation=entry.documentation if request.include_documentation or is_logger else None,
    )


def _invalid(problem: str) -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, problem)
