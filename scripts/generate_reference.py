"""Writes docs/reference/ from the declarations of settings, metrics, permissions and endpoints, and from the options of
commands; also alert rules and dashboards (scripts/monitoring_files.py). A test fails when it is not current.

python -m scripts.generate_reference
"""

import sys
from collections.abc import Iterable
from pathlib import Path

from kaspar.base.errors import ErrorCode
from kaspar.broker.authorization.table import guards
from kaspar.broker.metrics.catalogue import reference_page as metrics_page
from kaspar.broker.services import CurrentSettings
from kaspar.config import (
    BrokerConfig,
    BrokerSettings,
    ClientMetricsConfig,
    GroupConfig,
    LogConfig,
    Scope,
    Setting,
    Settings,
)
from kaspar.config.authorizer import AuthorizerSettings
from kaspar.console.settings import ConsoleSettings
from kaspar.monitor.settings import MonitorSettings
from kaspar.protocol.api import api_name
from kaspar.registry.settings import RegistrySettings
from kaspar.rest.settings import RestSettings
from kaspar.web.settings import WebSettings
from scripts.command_pages import command_pages
from scripts.doctor_page import doctor_page
from scripts.kafka_metrics import kafka_metrics_page
from scripts.monitoring_files import monitoring_files
from scripts.registry_pages import registry_page

_ROOT = Path(__file__).parent.parent
PAGES = _ROOT / "docs" / "reference"
_NOTE = "This page is written by `scripts/generate_reference.py` from the declarations in `src/kaspar/config`.\n"
_CHANGED = {
    Scope.READ_ONLY: "at a restart",
    Scope.PER_BROKER: "while running, for one broker",
    Scope.CLUSTER_WIDE: "while running, for one broker or for all",
}


def pages() -> dict[str, str]:
    """The text of each page by its file name."""
    return {
        "broker-settings.md": broker_page(),
        "topic-settings.md": topic_page(),
        "registry-settings.md": service_page("Settings of the schema registry", RegistrySettings),
        "rest-settings.md": service_page("Settings of the REST proxy", RestSettings),
        "monitor-settings.md": service_page("Settings of the monitor", MonitorSettings, like=None),
        "console-settings.md": service_page("Settings of the console", ConsoleSettings, like=None),
        "metrics.md": metrics_page(),
        "kafka-metrics.md": kafka_metrics_page(),
        "permissions.md": permissions_page(),
        "registry-api.md": registry_page(),
        "doctor.md": doctor_page(),
        **{f"commands/{name}": text for name, text in command_pages().items()},
    }


def broker_page() -> str:
    parts = [
        "# Broker settings\n",
        _NOTE,
        "They are given in a `server.properties` file or with `--override key=value`. Names and defaults are those of "
        "Kafka 4.3, and of Kafka 3.9 where they start with `zookeeper.`; names that start with `kaspar.` are our own. "
        "A setting marked **no effect** is accepted, so that a file written for Kafka can be used as it is, and does "
        "nothing; the broker says so when it starts.\n",
    ]
    for section in BrokerConfig.__bases__:
        assert issubclass(section, Settings)
        parts.append(f"## {_title(section)}\n")
        parts += [_entry(setting, _CHANGED[setting.scope]) for setting in _shown(section)]
    parts.append("## Settings of the authorizer\n")
    parts += [_entry(setting, _CHANGED[setting.scope]) for setting in _shown(AuthorizerSettings)]
    return "\n".join(parts)


def permissions_page() -> str:
    settings = CurrentSettings(BrokerSettings.of({"node.id": "1"}))
    parts = [
        "# Permissions\n",
        "This page is written by `scripts/generate_reference.py` from the table in "
        "`src/kaspar/broker/authorization/table.py`, from which the request pipeline takes its checks.\n",
        "What each API needs where there is an authorizer ([Security](../security.md)), and what the response has "
        "without it. An error code stands in the result of the resource, or in all of the response where the resource "
        "is the request's only one.\n",
        "| API | operation | on | of | without it |\n|---|---|---|---|---|",
    ]
    for key, guard in guards(settings).items():
        name = api_name(key)
        if not guard.needs:
            parts.append(f"| {name} | none | | | |")
        for each in guard.needs:
            denied = f"`{each.denied.name}`" if isinstance(each.denied, ErrorCode) else each.denied
            parts.append(f"| {name} | {each.operation.name} | {each.resource_type.name} | {each.of} | {denied} |")
            name = ""
    return "\n".join(parts) + "\n"


def topic_page() -> str:
    parts = [
        "# Topic settings\n",
        _NOTE,
        "They are given when a topic is created and changed while the broker runs. A topic that does not set one takes "
        "the broker's, whose name is given with it. **No effect** marks what is accepted and does nothing yet.\n",
    ]
    parts += [_entry(setting, None) for setting in _shown(LogConfig)]
    for title, table in (("Group settings", GroupConfig), ("Client-metrics settings", ClientMetricsConfig)):
        parts.append(f"## {title}\n")
        parts += [_entry(setting, None) for setting in _shown(table)]
    return "\n".join(parts)


_LIKE_CONFLUENTS = (
    " Names are those of Confluent's service; those that start with `kaspar.` are our own. A setting marked **no "
    "effect** is accepted: a file written for Confluent's service can be used as it is, and does nothing; the service "
    "says so when it starts."
)


def service_page(title: str, table: type[WebSettings], *, like: str | None = _LIKE_CONFLUENTS) -> str:
    """`like` says whose names they are, if they are somebody's."""
    passed_on = ", ".join(f"`{prefix}`" for prefix in table.passed_on)
    parts = [
        f"# {title}\n",
        "This page is written by `scripts/generate_reference.py` from the declarations of the settings.\n",
        f"They are given in a properties file or with `--override key=value`.{like or ''} Names that start with "
        f"{passed_on} and are not listed are properties of its clients.\n",
        "## Its own\n",
    ]
    parts += [_entry(each, None) for each in _shown(table) if not _is_shared(each)]
    parts.append("## Those of every service\n")
    parts.append("How they work together is in [Services](../services.md).\n")
    parts += [_entry(each, None) for each in _shown(table) if _is_shared(each)]
    return "\n".join(parts)


def _is_shared(setting: Setting) -> bool:
    return setting.name in WebSettings.declared


def _title(section: type[Settings]) -> str:
    """The sections' modules say in their first line what they hold."""
    return (sys.modules[section.__module__].__doc__ or "").splitlines()[0].rstrip(".")


def _shown(table: type[Settings]) -> Iterable[Setting]:
    return (setting for setting in table.declared.values() if not setting.internal)


def _entry(setting: Setting, changed: str | None) -> str:
    text = setting.format(setting.default)
    default = "none" if text is None else f"`{text}`" if text else "empty"
    facts = [f"type {setting.kind}", f"default {default}"]
    if setting.check is not None:
        facts.append(f"valid {setting.check.description}")
    if setting.synonyms:
        facts.append("from the broker's " + ", ".join(f"`{synonym.name}`" for synonym in setting.synonyms))
    if changed is not None:
        facts.append(f"changed {changed}")
    facts.append(f"importance {setting.importance.value}")
    lines = [f"### `{setting.name}`\n", f"{setting.doc}\n"]
    if setting.not_honoured:
        lines.append(f"**No effect.** {setting.not_honoured}\n")
    lines.append(f"*{'; '.join(facts)}*\n")
    return "\n".join(lines)


def main() -> None:
    (PAGES / "commands").mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (PAGES / name).write_text(text, encoding="utf-8")
        print(f"wrote docs/reference/{name}")
    for name, text in monitoring_files().items():
        (_ROOT / name).write_text(text, encoding="utf-8")
        print(f"wrote {name}")


if __name__ == "__main__":
    main()
