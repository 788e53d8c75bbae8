"""The entities that a call of kafka-configs applies to: their types and names.

An entity is given by `--entity-type topics --entity-name orders`, or in short by `--topic orders`. An empty name stands
for the default of the type. Users and clients can be given together, which means the clients of a user.
"""

import argparse
from collections import Counter
from dataclasses import dataclass
from typing import Final

from kaspar.tools.command_line import CommandFailed, is_given
from kaspar.tools.java_numbers import parse_int

TOPICS: Final = "topics"
CLIENTS: Final = "clients"
USERS: Final = "users"
BROKERS: Final = "brokers"
IPS: Final = "ips"
CLIENT_METRICS: Final = "client-metrics"
GROUPS: Final = "groups"
BROKER_LOGGERS: Final = "broker-loggers"
TYPES: Final = (TOPICS, CLIENTS, USERS, BROKERS, IPS, CLIENT_METRICS, GROUPS, BROKER_LOGGERS)

DEFAULT_NAME: Final = ""

_SHORT: Final = {
    "topic": TOPICS,
    "client": CLIENTS,
    "user": USERS,
    "broker": BROKERS,
    "broker-logger": BROKER_LOGGERS,
    "ip": IPS,
    "client-metrics": CLIENT_METRICS,
    "group": GROUPS,
}
_SHORT_DEFAULTS: Final = {
    "client-defaults": CLIENTS,
    "user-defaults": USERS,
    "broker-defaults": BROKERS,
    "ip-defaults": IPS,
}
_WITH_DEFAULTS: Final = frozenset(_SHORT_DEFAULTS.values())


@dataclass(frozen=True, slots=True)
class Entities:
    """Types and names in Kafka's order. The command reports the first of each as changed."""

    types: tuple[str, ...]
    names: tuple[str, ...]
    """As many as types, or fewer: a type without a name stands for all entities of that type."""

    @property
    def type(self) -> str:
        return self.types[0]

    @property
    def name(self) -> str | None:
        return self.names[0] if self.names else None

    @property
    def has_defaults(self) -> bool:
        """Whether one of the types has a default for entities without settings of their own."""
        return not _WITH_DEFAULTS.isdisjoint(self.types)


def entities_of(options: argparse.Namespace) -> Entities:
    """The entities that the options name. Raises CommandFailed with Kafka's message if they do not."""
    short = [(name, kind) for name, kind in _SHORT.items() if is_given(options, name)]
    defaults = [kind for name, kind in _SHORT_DEFAULTS.items() if is_given(options, name)]
    types = (*(options.entity_type or ()), *(kind for _, kind in short), *defaults)
    names = (
        *(DEFAULT_NAME if name is None else name for name in options.entity_name or ()),  # None: --entity-default
        *(getattr(options, name.replace("-", "_")) for name, _ in short),
        *([DEFAULT_NAME] * len(defaults)),
    )
    if repeated := [kind for kind, count in Counter(types).items() if count > 1]:
        raise CommandFailed(f"Duplicate entity type(s) specified: {','.join(repeated)}")
    if options.bootstrap_server is None and options.bootstrap_controller is None:
        raise CommandFailed("Either --bootstrap-server or --bootstrap-controller must be specified.")
    _check_types(types)
    if (options.entity_type or options.entity_name) and (short or defaults):
        raise CommandFailed("--entity-{type,name,default} should not be used in conjunction with specific entity flags")
    if options.bootstrap_server is not None and options.bootstrap_controller is not None:
        raise CommandFailed("Only one of --bootstrap-server or --bootstrap-controller can be specified")
    found = Entities(types, names)
    _check_names(found)
    return found


def _check_types(types: tuple[str, ...]) -> None:
    for kind in types:
        if kind not in TYPES:
            raise CommandFailed(
                f"Invalid entity type {kind}, the entity type must be one of {', '.join(TYPES)} with a "
                "--bootstrap-server or --bootstrap-controller argument"
            )
    if not types:
        raise CommandFailed("At least one entity type must be specified")
    if len(types) > 1 and set(types) != {USERS, CLIENTS}:
        raise CommandFailed(f"Only '{USERS}' and '{CLIENTS}' entity types may be specified together")


def _check_names(entities: Entities) -> None:
    for name in filter(None, entities.names):
        if entities.type in (BROKERS, BROKER_LOGGERS) and not _is_integer(name):
            raise CommandFailed(
                f"The entity name for {entities.type} must be a valid integer broker id, but it is: {name}"
            )
        if entities.type == IPS and not _is_host(name):
            raise CommandFailed(
                f"The entity name for {entities.type} must be a valid IP or resolvable host, but it is: {name}"
            )


def _is_integer(text: str) -> bool:
    try:
        parse_int(text)
    except ValueError:
        return False
    return True


def _is_host(text: str) -> bool:
    import socket

    try:
        socket.getaddrinfo(text, None)
    except (OSError, UnicodeError):
        return False
    return True
