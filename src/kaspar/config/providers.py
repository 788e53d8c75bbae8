"""Values that are kept elsewhere: `config.providers` (KIP-297, KIP-421), so that secrets need not be in settings files.

    config.providers=file,env
    config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
    config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider
    ssl.keystore.password=${file:/run/secrets/broker.properties:keystore.password}
    ssl.key.password=${env:KEY_PASSWORD}

`file` reads a key of a properties file, `directory` a file of a folder, `env` an environment variable. A reference to
an undeclared provider is plain text, as in Kafka. A reference that cannot be resolved is an error: no broker starts
with `${env:...}` as its password.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from kaspar.base.errors import InvalidSetting
from kaspar.config.properties import read_properties

Provider: TypeAlias = Callable[[str, str], str]
"""Returns the value of a key at a path, which may be empty. Raises InvalidSetting."""

_REFERENCE: Final = re.compile(r"\$\{([^}:]*):(?:([^}]*):)?([^}:]*)\}")
_PACKAGE: Final = "org.apache.kafka.common.config.provider."


def resolve_providers(values: Mapping[str, str]) -> dict[str, str]:
    """Return the values with their references resolved. Raises InvalidSetting."""
    names = [name.strip() for name in values.get("config.providers", "").split(",") if name.strip()]
    if not names:
        return dict(values)
    providers = {name: _provider(name, values) for name in names}
    return {
        name: text if name.startswith("config.providers") else _resolved(name, text, providers)
        for name, text in values.items()
    }


def _resolved(name: str, text: str, providers: Mapping[str, Provider]) -> str:
    def value_of(reference: re.Match[str]) -> str:
        provider = providers.get(reference[1])
        if provider is None:
            return reference[0]
        try:
            return provider(reference[2] or "", reference[3])
        except InvalidSetting as problem:
            raise InvalidSetting(f"{name}: {problem}") from None

    return _REFERENCE.sub(value_of, text)


def _provider(name: str, values: Mapping[str, str]) -> Provider:
    prefix = f"config.providers.{name}."
    class_name = values.get(f"{prefix}class", "").strip()
    allowed = [Path(each.strip()) for each in values.get(f"{prefix}param.allowed.paths", "").split(",") if each.strip()]
    match class_name.removeprefix(_PACKAGE):
        case "FileConfigProvider":
            return lambda path, key: _from_file(_checked(path, allowed), key)
        case "DirectoryConfigProvider":
            return lambda path, key: _from_directory(_checked(path, allowed), key)
        case "EnvVarConfigProvider":
            pattern = re.compile(values.get(f"{prefix}param.allowlist.pattern", ".*"))
            return lambda path, key: _from_environment(key, pattern)
    raise InvalidSetting(
        f"config.providers.{name}.class is {class_name or 'missing'}: FileConfigProvider, DirectoryConfigProvider and "
        f"EnvVarConfigProvider of {_PACKAGE[:-1]} are supported"
    )


def _checked(path: str, allowed: list[Path]) -> Path:
    file = Path(os.path.normpath(path))
    if allowed and not any(file.is_relative_to(each) for each in allowed):
        raise InvalidSetting(f"{path} is not among the provider's allowed.paths")
    return file


def _from_file(file: Path, key: str) -> str:
    try:
        found = read_properties(file.read_text(encoding="utf-8")).get(key)
    except (OSError, UnicodeDecodeError):
        raise InvalidSetting(f"Could not read properties from file {file}") from None
    if found is None:
        raise InvalidSetting(f"{file} has no key {key}")
    return found


def _from_directory(folder: Path, key: str) -> str:
    file = folder / key
    if "/" in key or not key or key.startswith("."):
        raise InvalidSetting(f"{key!r} is not the name of a file in {folder}")
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidSetting(f"Could not read file {file}") from None


def _from_environment(key: str, allowed: re.Pattern[str]) -> str:
    if key not in os.environ or allowed.fullmatch(key) is None:
        raise InvalidSetting(f"the environment has no variable {key} that may be used")
    return os.environ[key]
