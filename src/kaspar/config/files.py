"""Settings from a `server.properties` file and from `--override key=value`.

The file has the syntax of Java properties. An unknown name is a warning that suggests the closest known one, because it
is most likely a typo; an invalid value stops the start.
"""

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path

from kaspar.base.errors import InvalidSetting
from kaspar.config.authorizer import AuthorizerSettings
from kaspar.config.broker import BrokerConfig
from kaspar.config.broker.removed_settings import REMOVED_SETTINGS
from kaspar.config.endpoints import without_listener_prefix
from kaspar.config.properties import read_properties
from kaspar.config.providers import resolve_providers


def load_settings(file: Path | None, overrides: Iterable[str] = ()) -> dict[str, str]:
    """Load the settings of a file, with `key=value` overrides on top, and with references to `config.providers`
    resolved. Raises InvalidSetting with a sentence.
    """
    values: dict[str, str] = {}
    if file is not None:
        try:
            values = read_properties(file.read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            raise InvalidSetting(f"{file} is not a text file in UTF-8") from None
        except OSError as problem:
            raise InvalidSetting(f"{file} cannot be read: {problem.strerror}") from None
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals or not key.strip():
            raise InvalidSetting(f"--override {override!r} is not of the form key=value")
        values[key.strip()] = value.strip()
    return resolve_providers(values)


def warnings_about(values: Mapping[str, str]) -> list[str]:
    """A sentence for each unknown name and each setting that has no effect, in the order of the file."""
    sentences = []
    for name in values:
        if name.startswith("config.providers"):
            continue
        declaration = BrokerConfig.declared.get(without_listener_prefix(name))
        if declaration is not None:
            if declaration.not_honoured:
                sentences.append(f"{name} has no effect: {declaration.not_honoured}")
        elif name in AuthorizerSettings.declared:
            if not values.get("authorizer.class.name"):
                sentences.append(f"{name} has no effect: authorizer.class.name is not set.")
        elif name in REMOVED_SETTINGS:
            sentences.append(f"{name} has no effect: {REMOVED_SETTINGS[name]}.")
        else:
            closest = difflib.get_close_matches(name, BrokerConfig.declared, n=1, cutoff=0.7)
            meant = f" Did you mean {closest[0]}?" if closest else ""
            sentences.append(f"{name} is not a known setting and has no effect.{meant}")
    return sentences
