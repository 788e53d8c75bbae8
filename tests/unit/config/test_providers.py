"""config.providers: values from files, folders and the environment."""

from pathlib import Path

import pytest

from kaspar.base.errors import InvalidSetting
from kaspar.config.providers import resolve_providers

PACKAGE = "org.apache.kafka.common.config.provider."
PROVIDERS = {
    "config.providers": "file, directory,env",
    "config.providers.file.class": PACKAGE + "FileConfigProvider",
    "config.providers.directory.class": PACKAGE + "DirectoryConfigProvider",
    "config.providers.env.class": PACKAGE + "EnvVarConfigProvider",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secrets.properties").write_text("store.password = from\\u0020file\nother=2\n")
    (tmp_path / "password").write_text("from directory")
    return tmp_path


def test_values_come_from_elsewhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_PASSWORD", "from environment")
    values = {
        **PROVIDERS,
        "a": f"${{file:{folder}/secrets.properties:store.password}}",
        "b": f"${{directory:{folder}:password}}",
        "c": "${env:KEY_PASSWORD}",
        "d": f'login password="${{env:KEY_PASSWORD}}" and ${{file:{folder}/secrets.properties:other}};',
        "e": "${vault:path:key} and ${x}",
    }
    resolved = resolve_providers(values)
    assert [resolved[name] for name in "abcde"] == [
        "from file",
        "from directory",
        "from environment",
        'login password="from environment" and 2;',
        "${vault:path:key} and ${x}",
    ]


def test_without_providers_everything_is_text() -> None:
    assert resolve_providers({"a": "${env:HOME}"}) == {"a": "${env:HOME}"}


@pytest.mark.parametrize(
    ("value", "more", "part"),
    [
        ("${file:/does/not/exist:key}", {}, "a: Could not read properties from file /does/not/exist"),
        ("${file:FOLDER/secrets.properties:missing}", {}, "has no key missing"),
        ("${directory:FOLDER:../x}", {}, "is not the name of a file"),
        ("${env:NO_SUCH_VARIABLE}", {}, "the environment has no variable NO_SUCH_VARIABLE"),
        ("${env:HOME}", {"config.providers.env.param.allowlist.pattern": "KAFKA_.*"}, "no variable HOME"),
        ("${file:FOLDER/../etc:x}", {"config.providers.file.param.allowed.paths": "FOLDER"}, "allowed.paths"),
        ("x", {"config.providers": "vault"}, "config.providers.vault.class is missing"),
    ],
)
def test_what_leads_nowhere_is_an_error(value: str, more: dict[str, str], part: str, folder: Path) -> None:
    values = {**PROVIDERS, "a": value, **more}
    with pytest.raises(InvalidSetting) as refused:
        resolve_providers({name: text.replace("FOLDER", str(folder)) for name, text in values.items()})
    assert part in str(refused.value)
