"""Selects the dynamic settings of Kafka that are adopted: those that Kaspar has, with values that are valid there."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sized
from dataclasses import dataclass
from typing import Final

from kaspar.base.errors import InvalidSetting
from kaspar.base.sentences import some
from kaspar.config import BrokerConfig, ClientMetricsConfig, GroupConfig, LogConfig, Setting
from kaspar.metadata.image import CLUSTER_DEFAULT
from kaspar.metadata.kraft.state import BROKER, CLIENT_METRICS, GROUP, TOPIC, KRaftState

_DECLARED: Final[Mapping[int, Mapping[str, Setting]]] = {
    TOPIC: LogConfig.declared,
    BROKER: BrokerConfig.declared,
    CLIENT_METRICS: ClientMetricsConfig.declared,
    GROUP: GroupConfig.declared,
}
_NOUNS: Final = {TOPIC: "topic", BROKER: "broker", CLIENT_METRICS: "subscription", GROUP: "group"}
_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class TakenSettings:
    """`by_type` has the settings of each resource by the resource's type and name. `losses` describe the settings that
    are not adopted or have no effect.
    """

    by_type: Mapping[int, Mapping[str, Mapping[str, str]]]
    losses: tuple[str, ...]


def take_settings(state: KRaftState, node_id: int) -> TakenSettings:
    taken: dict[int, dict[str, dict[str, str]]] = {kind: {} for kind in _DECLARED}
    lost: dict[str, list[str]] = defaultdict(list)
    for (kind, resource), values in sorted(state.configs.items()):
        if kind not in _DECLARED:
            lost[f"settings of the unknown resource type {kind}"].append(resource)
        elif kind == BROKER and resource not in (CLUSTER_DEFAULT, str(node_id)):
            lost["settings of another broker"].append(resource)
        else:
            usable = {name: text for name, text in values.items() if _is_taken(kind, resource, name, text, lost)}
            if usable:
                taken[kind][resource] = usable
    return TakenSettings(taken, tuple(f"{reason}: {listed(names)}" for reason, names in lost.items()))


def _is_taken(kind: int, resource: str, name: str, text: str, lost: dict[str, list[str]]) -> bool:
    """Whether a setting is adopted. Adds to `lost` why it is not, or has no effect. Unknown settings of brokers are
    kept, as in Kafka.
    """
    declaration = _DECLARED[kind].get(name)
    if declaration is None:
        lost[f"the setting {name} is not known here"].append(_resource(kind, resource))
        return kind == BROKER
    if declaration.not_honoured:
        lost[f"the setting {name} has no effect ({declaration.not_honoured.rstrip('.')})"].append(
            _resource(kind, resource)
        )
    try:
        declaration.parse(text)
    except InvalidSetting as problem:
        lost[f"the setting {name} is not valid here ({problem})"].append(_resource(kind, resource))
        return False
    return True


def _resource(kind: int, resource: str) -> str:
    return "all brokers" if (kind, resource) == (BROKER, CLUSTER_DEFAULT) else f"{_NOUNS[kind]} {resource}"


def listed(names: Collection[str]) -> str:
    """The first few names, and the number of the others."""
    return some(names, _NAMED)


def counted(things: Sized, noun: str) -> str:
    return f"{len(things)} {noun}" + ("" if len(things) == 1 else "s")
