"""Decisions about settings: of topics, brokers, groups and client-metrics subscriptions.

Two settings affect elections (elections.py). When min.insync.replicas changes, the eligible leader replicas are
cleared before the new value is stored, because leaders commit by the new value as soon as they learn it. When unclean
elections are allowed, partitions without a leader get one at once.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from kaspar.base.errors import ErrorCode, InvalidSetting, Refused
from kaspar.base.ids import BrokerId
from kaspar.config import (
    AlterOperation,
    BrokerConfig,
    BrokerSettings,
    ClientMetricsConfig,
    GroupConfig,
    LogConfig,
    Setting,
    apply_operation,
    validate_client_metrics,
    validate_dynamic,
    validate_group,
    validate_topic_overrides,
)
from kaspar.controller.brokers import elect_leaderless
from kaspar.controller.decision import Decision, Draft
from kaspar.controller.elections import MIN_INSYNC_REPLICAS, UNCLEAN_LEADER_ELECTION, Rules
from kaspar.controller.events import (
    DONE,
    AlterConfigs,
    ConfigChange,
    ConfigOperation,
    Outcome,
    ResourceOutcome,
    ResourceType,
)
from kaspar.controller.in_sync import forget_eligible
from kaspar.metadata.image import CLUSTER_DEFAULT, EMPTY_CONFIGS, ClusterImage, Configs
from kaspar.metadata.topic_names import check_topic_name

_DECLARED: Mapping[int, Mapping[str, Setting]] = {
    ResourceType.TOPIC: LogConfig.declared,
    ResourceType.BROKER: BrokerConfig.declared,
    ResourceType.GROUP: GroupConfig.declared,
    ResourceType.CLIENT_METRICS: ClientMetricsConfig.declared,
}
_FIELDS = {
    ResourceType.BROKER: "broker_configs",
    ResourceType.GROUP: "group_configs",
    ResourceType.CLIENT_METRICS: "client_metrics_configs",
}


@dataclass(frozen=True, slots=True)
class ConfigDecisions:
    """What decisions about settings need beyond the image. A broker's own settings are checked only by that broker."""

    broker_id: BrokerId
    settings: BrokerSettings
    received_by: BrokerId

    def alter(self, image: ClusterImage, event: AlterConfigs) -> Decision[tuple[ResourceOutcome, ...]]:
        times = Counter(change.resource for change in event.changes)
        draft = Draft(image)
        replies: list[ResourceOutcome] = []
        may_elect = False
        for change in event.changes:
            try:
                if times[change.resource] > 1:
                    raise _invalid("Each resource must appear at most once.")
                configs = self._altered(draft, change)
                before = _current(draft, change)
                changes_isr = before.get(MIN_INSYNC_REPLICAS) != configs.get(MIN_INSYNC_REPLICAS)
                if image.has_elr and changes_isr:
                    _check_one_for_all(change, configs)
                if not event.validate_only:
                    if image.has_elr and changes_isr:
                        _forget_eligible(draft, change)
                    _store(draft, change, configs)
                    may_elect |= before.get(UNCLEAN_LEADER_ELECTION) != configs.get(UNCLEAN_LEADER_ELECTION)
                replies.append(ResourceOutcome(change.resource, DONE))
            except Refused as refused:
                replies.append(ResourceOutcome(change.resource, Outcome.of(refused)))
        if may_elect:
            elect_leaderless(draft, Rules.of(self._config_after(draft), image))
        return draft.decide(tuple(replies))

    def _config_after(self, draft: Draft) -> BrokerConfig:
        default = draft.configs("broker_configs", CLUSTER_DEFAULT)
        own = draft.configs("broker_configs", str(self.broker_id))
        return self.settings.with_dynamic(default=default, broker=own).config

    def _altered(self, draft: Draft, change: ConfigChange) -> dict[str, str]:
        """The resource's settings after the change, checked."""
        _check_form(change)
        kind, name = change.resource.type, change.resource.name
        if kind == ResourceType.BROKER and name:
            _check_broker_name(name, self.received_by)
        code = ErrorCode.INVALID_REQUEST if kind == ResourceType.BROKER else ErrorCode.INVALID_CONFIG
        configs = dict(EMPTY_CONFIGS if change.replace else _current(draft, change))
        for step in change.operations:
            configs = _with_step(configs, kind, step)
        try:
            self._validate(draft, change, configs)
        except InvalidSetting as problem:
            raise Refused(code, str(problem)) from None
        return configs

    def _validate(self, draft: Draft, change: ConfigChange, configs: dict[str, str]) -> None:
        name = change.resource.name
        match change.resource.type:
            case ResourceType.TOPIC:
                if not name:
                    raise _invalid("Default topic resources are not allowed.")
                check_topic_name(name)
                validate_topic_overrides(self.settings.config, configs)
                if draft.topic(name) is None:
                    raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
            case ResourceType.BROKER:
                given = {step.name for step in change.operations if step.operation != AlterOperation.DELETE}
                validate_dynamic(
                    self.settings,
                    {key: value for key, value in configs.items() if key in given or key in BrokerConfig.declared},
                    per_broker=bool(name),
                )
            case ResourceType.GROUP:
                if not name:
                    raise _invalid("Default group resources are not allowed.")
                validate_group(self.settings.config, configs)
            case ResourceType.CLIENT_METRICS:
                if not name:
                    raise _invalid("Subscription name can't be empty")
                validate_client_metrics(configs)


def _check_broker_name(name: str, received_by: BrokerId) -> None:
    try:
        broker_id = int(name)
    except ValueError:
        raise _invalid(f"Node id must be an integer, but it is: {name}") from None
    if broker_id != received_by:
        raise _invalid(f"Unexpected broker id, expected {received_by}, but received {name}")


def _check_one_for_all(change: ConfigChange, configs: Configs) -> None:
    """While eligible leader replicas are tracked, all brokers have the same min.insync.replicas (KIP-966)."""
    if change.resource.type != ResourceType.BROKER:
        return
    if change.resource.name:
        raise Refused(
            ErrorCode.INVALID_CONFIG, "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
        )
    if MIN_INSYNC_REPLICAS not in configs:
        raise Refused(
            ErrorCode.INVALID_CONFIG, "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
        )


def _forget_eligible(draft: Draft, change: ConfigChange) -> None:
    if change.resource.type == ResourceType.BROKER:
        forget_eligible(draft, draft.image().topics.values())
    elif (topic := draft.topic(change.resource.name)) is not None and change.resource.type == ResourceType.TOPIC:
        forget_eligible(draft, [topic])


def _check_form(change: ConfigChange) -> None:
    """The checks that do not depend on the kind of resource."""
    names = [step.name for step in change.operations]
    if len(set(names)) < len(names):
        raise _invalid("Error due to duplicate config keys")
    if nulls := [step.name for step in change.operations if _needs_value(step) and step.value is None]:
        raise _invalid(f"Null value not supported for : {', '.join(nulls)}")
    if change.resource.type not in _DECLARED:
        raise _invalid(f"Unknown resource type {change.resource.type}")
    for step in change.operations:
        if step.operation not in list(AlterOperation):
            raise _invalid(f"Unknown operations type {step.operation}")


def _with_step(configs: dict[str, str], kind: int, step: ConfigOperation) -> dict[str, str]:
    operation = AlterOperation(step.operation)
    try:
        return apply_operation(_DECLARED[kind], configs, step.name, operation, step.value)
    except InvalidSetting as problem:
        sentence = str(problem)
    if kind == ResourceType.BROKER:
        # Kafka checks these on the broker, with other messages.
        known = step.name in BrokerConfig.declared
        not_allowed = f"Config value {operation.name.lower()} is not allowed for config key: {step.name}"
        sentence = not_allowed if known else f"Unknown config name: {step.name}"
    raise Refused(ErrorCode.INVALID_CONFIG, sentence)


def _needs_value(step: ConfigOperation) -> bool:
    return step.operation != AlterOperation.DELETE


def _current(draft: Draft, change: ConfigChange) -> Configs:
    if change.resource.type == ResourceType.TOPIC:
        topic = draft.topic(change.resource.name)
        return EMPTY_CONFIGS if topic is None else topic.configs
    return draft.configs(_FIELDS[ResourceType(change.resource.type)], change.resource.name)


def _store(draft: Draft, change: ConfigChange, configs: dict[str, str]) -> None:
    if change.resource.type == ResourceType.TOPIC:
        topic = draft.topic(change.resource.name)
        assert topic is not None, "the topic was there when the change was validated"
        draft.put_topic(replace(topic, configs=configs))
    else:
        draft.put_configs(_FIELDS[ResourceType(change.resource.type)], change.resource.name, configs)


def _invalid(problem: str) -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, problem)
