"""Tests know nothing of the profiles of the person who runs them."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def profiles_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the profiles of this test are."""
    folder = tmp_path_factory.mktemp("config")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    for name in ("KASPAR_PROFILE", "KASPAR_BOOTSTRAP_SERVER"):
        monkeypatch.delenv(name, raising=False)
    return folder / "kaspar/profiles"
