"""The settings of the console, and the properties of its Kafka clients.

A client's properties have the names of Java's clients, with the prefix `client.` or, with precedence, `producer.`,
`consumer.` or `admin.`. The monitor's settings (`lag.`, `rates.` ...) are for the console's own monitor, which it runs
unless one is passed to it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Self
from urllib.parse import urlsplit

from kaspar.base.errors import InvalidSetting
from kaspar.callers.settings import IdentitySettings, properties_behind, without_protocols
from kaspar.config.checks import Check, at_least
from kaspar.config.declaration import Importance, Settings, setting
from kaspar.config.kinds import BOOLEAN, INT, LIST, STRING
from kaspar.config.units import MIB
from kaspar.web.settings import WebSettings, listeners_setting

_ADMIN_TIMEOUT_MS: Final = 10_000
"""Short, because a person waits for the page."""


def _origins_problem(origins: tuple[str, ...]) -> str | None:
    for each in origins:
        if re.fullmatch(r"https?://[^/?#@\s]+", each) is None:
            return f"{each!r} is not of the form https://host or https://host:port"
    return None


_ORIGINS: Final = Check(_origins_problem, "origins")


class PageSettings(Settings):
    bootstrap_servers: str = setting(
        STRING,
        "localhost:9092",
        importance=Importance.HIGH,
        doc="Brokers of the cluster: `host:port`, separated by commas.",
    )
    schema_registry_url: tuple[str, ...] = setting(
        LIST, (), importance=Importance.HIGH, doc="The URL of the schema registry. Empty if there is none."
    )
    kaspar_console_allowed_hosts: tuple[str, ...] = setting(
        LIST,
        (),
        importance=Importance.HIGH,
        doc="Host names by which browsers may reach the console, in addition to `localhost`, the names of this "
        "machine and of `listeners`, and any IP address. Requests for other hosts are rejected, which prevents DNS "
        "rebinding by other sites.",
    )
    kaspar_console_origins: tuple[str, ...] = setting(
        LIST,
        (),
        _ORIGINS,
        doc="How browsers reach the console through a proxy that terminates TLS or uses another port, such as "
        "`https://console.example.org`: changes from these origins are accepted, and their hosts are allowed.",
    )
    kaspar_console_read_only: bool = setting(BOOLEAN, False, doc="Whether to reject all changes.")
    kaspar_console_audit_file: str = setting(
        STRING,
        "",
        doc="The audit log: a file with a JSON line for each attempted change, with the user, the resource and the "
        "outcome. It is rotated at 100 MiB, and ten rotated files are kept. Empty writes these lines to the "
        "service's log.",
    )
    kaspar_console_pipelines_folder: str = setting(
        STRING, "", doc="The folder of the pipelines that `kaspar up` runs. Empty shows no pipelines."
    )
    kaspar_console_max_pages: int = setting(
        INT,
        200,
        at_least(1),
        doc="The maximum number of open pages with live updates. Further ones get the status 503.",
    )


class ConsoleSettings(PageSettings, IdentitySettings, WebSettings):
    listeners: tuple[str, ...] = listeners_setting(8080)
    kaspar_http_max_body_bytes: int = setting(
        INT, 16 * MIB, at_least(1), doc="The maximum size of a request body. A larger one gets the status 413."
    )
    passed_on = (
        "client.",
        "producer.",
        "consumer.",
        "admin.",
        "schema.registry.",
        "cluster.",
        "lag.",
        "rates.",
        "canary.",
        "doctor.",
        "kaspar.metrics.",
    )

    @property
    def allowed_hosts(self) -> tuple[str, ...]:
        proxies = (urlsplit(each).hostname or "" for each in self.kaspar_console_origins)
        return *super().allowed_hosts, *self.kaspar_console_allowed_hosts, *proxies

    def check_together(self) -> None:
        super().check_together()
        if self.kaspar_propagate_identity and self.authentication_method.upper() == "NONE":
            raise InvalidSetting("kaspar.propagate.identity=true needs authentication.method=BASIC or BEARER")


@dataclass(frozen=True, slots=True)
class ConsoleConfig:
    """The settings, and the properties of each kind of client, which may contain secrets."""

    settings: ConsoleSettings
    producer: Mapping[str, str] = field(repr=False)
    consumer: Mapping[str, str] = field(repr=False)
    admin: Mapping[str, str] = field(repr=False)
    registry: Mapping[str, str] = field(repr=False)
    """`schema.registry.url` and the other properties of the registry's client, with their prefix."""

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Self:
        """Raises InvalidSetting with a sentence."""
        settings = ConsoleSettings.of(values)
        properties = partial(properties_behind, values, declared=ConsoleSettings.declared)
        servers = {"bootstrap.servers": without_protocols(settings.bootstrap_servers)}
        timeouts = {"default.api.timeout.ms": str(_ADMIN_TIMEOUT_MS)}
        return cls(
            settings,
            producer=servers | properties("client.", "producer."),
            consumer=servers | properties("client.", "consumer."),
            admin=servers | timeouts | properties("client.", "admin."),
            registry={name: value for name, value in values.items() if name.startswith("schema.registry.")},
        )
