"""The settings of the monitor, and the properties of its Kafka clients, which have the prefix `client.`.

Settings that Burrow also has (`intervals`, `min-distance`, `expire-group`, `minimum-complete`) have the same name and
meaning here, with the prefix `lag.`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self
from urllib.parse import urlsplit

from kaspar.base.errors import InvalidSetting
from kaspar.callers.settings import IdentitySettings
from kaspar.client.admin.session import Admin
from kaspar.config.checks import Check, at_least, between
from kaspar.config.client_properties import milliseconds
from kaspar.config.declaration import Importance, Settings, setting
from kaspar.config.kinds import BOOLEAN, DOUBLE, INT, LIST, LONG, PASSWORD, STRING
from kaspar.monitor.canary.settings import CanarySettings
from kaspar.security.client import client_security
from kaspar.web.settings import WebSettings, listeners_setting

_REQUEST_TIMEOUT_MS: Final = 3_000
_API_TIMEOUT_MS: Final = 3_000
"""A round is due every ten seconds and makes a few sequential calls. Requests that time out wait for the next round."""


def _pattern_problem(text: str) -> str | None:
    try:
        re.compile(text)
    except re.error as problem:
        return f"Not a regular expression: {problem}"
    return None


_PATTERN: Final = Check(_pattern_problem, "a regular expression")


class ClusterSettings(Settings):
    bootstrap_servers: str = setting(
        STRING,
        "localhost:9092",
        importance=Importance.HIGH,
        doc="Brokers of the cluster: `host:port`, separated by commas.",
    )
    cluster_name: str = setting(
        STRING, "local", doc="The cluster's name in paths of the HTTP API and in the labels of metrics."
    )
    cluster_interval_ms: int = setting(
        LONG, 10_000, at_least(100), doc="How often the cluster's brokers, leaders and replicas are read."
    )


class LagSettings(Settings):
    lag_interval_ms: int = setting(
        LONG,
        10_000,
        at_least(100),
        importance=Importance.HIGH,
        doc="How often the offsets of all groups and the log end offsets are read.",
    )
    lag_intervals: int = setting(
        INT,
        10,
        between(2, 1_000),
        importance=Importance.HIGH,
        doc="How many commits, and how many log end offsets, of a partition are kept to evaluate it.",
    )
    lag_min_distance_ms: int = setting(
        LONG, 0, at_least(0), doc="A commit that follows the previous one within this time replaces it in the window."
    )
    lag_minimum_complete: float = setting(
        DOUBLE,
        1.0,
        between(0.0, 1.0),
        doc="The fraction of the window that must be filled before a partition can be other than OK. A partition "
        "that has been observed for the duration of a whole window is evaluated with the commits it has.",
    )
    lag_expire_group_ms: int = setting(
        LONG,
        604_800_000,
        at_least(1),
        doc="A group that commits nothing and has no members for this long is no longer evaluated.",
    )
    lag_history_ms: int = setting(LONG, 3_600_000, at_least(1), doc="How long the lag history of a group is kept.")
    lag_owners_interval_ms: int = setting(
        LONG, 60_000, at_least(100), doc="How often the members of groups and their assignments are read."
    )
    lag_group_allowlist: str = setting(STRING, "", _PATTERN, doc="Only groups whose names match are evaluated.")
    lag_group_denylist: str = setting(STRING, "", _PATTERN, doc="Groups whose names match are not evaluated.")


class RatesSettings(Settings):
    kaspar_metrics_urls: tuple[str, ...] = setting(
        LIST,
        (),
        importance=Importance.HIGH,
        doc="The metrics pages of the brokers, by broker id: `1=http://host:9404/metrics`, separated by "
        "commas. Without them, rates are derived from log end offsets only.",
    )
    kaspar_metrics_user: str = setting(STRING, "", doc="The user name for metrics pages; empty for no authentication.")
    kaspar_metrics_password: str | None = setting(PASSWORD, None, doc="The user's password.")
    kaspar_metrics_ca_location: str = setting(
        STRING, "", doc="A PEM file with the CA certificates to trust for metrics pages over HTTPS."
    )
    rates_interval_ms: int = setting(
        LONG, 2_000, at_least(100), doc="How often metrics pages are read while someone is watching."
    )
    rates_idle_interval_ms: int = setting(
        LONG, 10_000, at_least(100), doc="How often metrics pages are read while no one is watching."
    )
    rates_history_ms: int = setting(LONG, 3_600_000, at_least(1), doc="How long rates are kept.")


class DoctorSettings(Settings):
    doctor_interval_ms: int = setting(
        LONG,
        60_000,
        at_least(1_000),
        doc="How often the doctor observes the cluster; its findings are based on several observations.",
    )


class MonitorSettings(
    ClusterSettings, LagSettings, RatesSettings, CanarySettings, DoctorSettings, IdentitySettings, WebSettings
):
    listeners: tuple[str, ...] = listeners_setting(8000)
    kaspar_propagate_identity: bool = setting(
        BOOLEAN,
        False,
        importance=Importance.HIGH,
        doc="Whether a caller needs DESCRIBE on the cluster, for which brokers are asked with the caller's own "
        "credentials: the name and password of `BASIC` by the mechanism of `client.sasl.mechanism`, the token of "
        "`BEARER` by OAUTHBEARER. Needs `client.security.protocol` of SASL_SSL or SASL_PLAINTEXT. Otherwise everybody "
        "who logs in sees all that the monitor sees.",
    )
    kaspar_http_metrics_path: str = setting(
        STRING,
        "/http/metrics",
        doc="The path of the metrics of the monitor's own requests; those of the cluster are at `/metrics`. Empty "
        "disables it.",
    )
    passed_on = ("client.",)

    def check_together(self) -> None:
        super().check_together()
        metrics_pages(self.kaspar_metrics_urls)
        if self.kaspar_propagate_identity and self.authentication_method.upper() == "NONE":
            raise InvalidSetting("kaspar.propagate.identity=true needs authentication.method=BASIC or BEARER")


@dataclass(frozen=True, slots=True)
class MonitorConfig:
    """The settings, and the properties of the clients, which may contain secrets."""

    settings: MonitorSettings
    client: Mapping[str, str] = field(repr=False)
    """Properties with Java's names, including `bootstrap.servers`."""

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Self:
        """Raises InvalidSetting with a sentence."""
        settings = MonitorSettings.of(values)
        client = {"bootstrap.servers": settings.bootstrap_servers, "client.id": "kaspar-monitor"}
        client |= {name.removeprefix("client."): value for name, value in values.items() if name.startswith("client.")}
        config = cls(settings, client)
        try:
            config.new_admin().close()  # so that the start fails, not the first round
        except ValueError:
            raise InvalidSetting(
                "Invalid value for configuration bootstrap.servers: some entry is not host:port"
            ) from None
        return config

    @property
    def admin(self) -> Mapping[str, str]:
        return self.client

    producer = consumer = admin

    def new_admin(self) -> Admin:
        return Admin(
            self.client["bootstrap.servers"],
            client_id=self.client["client.id"],
            request_timeout_s=milliseconds(self.client, "request.timeout.ms", _REQUEST_TIMEOUT_MS) / 1000,
            api_timeout_s=milliseconds(self.client, "default.api.timeout.ms", _API_TIMEOUT_MS) / 1000,
            security=client_security(self.client),
        )


def metrics_pages(urls: tuple[str, ...]) -> dict[int, str]:
    """The address of each broker's page. Raises InvalidSetting."""
    pages: dict[int, str] = {}
    for entry in urls:
        number, separator, url = entry.partition("=")
        if not separator or not number.strip().isdecimal() or urlsplit(url.strip()).scheme not in ("http", "https"):
            raise InvalidSetting(f"kaspar.metrics.urls: {entry!r} is not BROKER=http://host:port/path")
        pages[int(number)] = url.strip()
    return pages
