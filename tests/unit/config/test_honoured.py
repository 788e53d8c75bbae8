"""A setting that the reference page calls effective is read by someone; the others say why they have no effect."""

import re
from pathlib import Path

import kaspar
from kaspar.config import BrokerConfig, LogConfig

SOURCES = Path(kaspar.__file__).parent
READ_THROUGH_A_PROPERTY = {
    "advertised.listeners": "advertised_endpoints",
    "listener.security.protocol.map": "endpoints",
    "controller.listener.names": "endpoints",
    "max.connections.per.ip.overrides": "max_connections_by_address",
    "kaspar.metrics.listener": "metrics_address",
}
CHECKED_AT_THE_START = {"process.roles"}


def words_outside_config() -> set[str]:
    files = (file for file in SOURCES.rglob("*.py") if SOURCES / "config" not in file.parents)
    return {word for file in files for word in re.findall(r"\w+", file.read_text(encoding="utf-8"))}


def test_effective_settings_are_read() -> None:
    words = words_outside_config()
    through_topics = {synonym.name for setting in LogConfig.declared.values() for synonym in setting.synonyms}
    unread = [
        name
        for table in (BrokerConfig, LogConfig)
        for name, setting in table.declared.items()
        if not setting.not_honoured
        and not setting.internal
        and name not in CHECKED_AT_THE_START
        and (table is LogConfig or name not in through_topics)
        and READ_THROUGH_A_PROPERTY.get(name, setting.attribute) not in words
    ]
    assert unread == []
