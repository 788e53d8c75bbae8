"""Which form of the compiled core is loaded, and that an extension older than its source never is."""

import shutil
import sysconfig
from pathlib import Path

import pytest

from kaspar.base import compiled
from kaspar.records import batch

SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
SOURCE = Path(batch.__file__).parent / "core.py"


@pytest.fixture
def package_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package folder with the source of the core alone, where load() looks for its compiled form."""
    (tmp_path / "records").mkdir()
    shutil.copy(SOURCE, tmp_path / "records")
    monkeypatch.setattr(compiled, "_PACKAGE_ROOT", tmp_path)
    monkeypatch.delenv("KASPAR_INTERPRETED", raising=False)
    monkeypatch.delenv("KASPAR_COMPILED", raising=False)
    return tmp_path


def test_extension_of_another_source_is_refused(package_root: Path) -> None:
    (package_root / "records" / f"_core_{'0' * 12}{SUFFIX}").touch()
    with pytest.raises(compiled.StaleExtensionError, match="older than its source"):
        compiled.load("kaspar.records.core")


def test_extension_is_stale_as_soon_as_its_source_changes(package_root: Path) -> None:
    built = [file for file in SOURCE.parent.iterdir() if file.name.startswith("_core_") and file.suffix == ".so"]
    if not built:
        pytest.skip("there is no compiled form here")
    shutil.copy(built[0], package_root / "records")
    with (package_root / "records" / "core.py").open("a") as source:
        source.write("# changed\n")
    with pytest.raises(compiled.StaleExtensionError):
        compiled.load("kaspar.records.core")


def test_interpreted_form_is_used_where_nothing_was_compiled(package_root: Path) -> None:
    assert compiled.load("kaspar.records.core").__name__ == "kaspar.records.core"


def test_missing_extension_is_an_error_where_it_is_required(
    package_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KASPAR_COMPILED", "1")
    with pytest.raises(ImportError, match="is missing"):
        compiled.load("kaspar.records.core")


def test_interpreted_form_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KASPAR_INTERPRETED", "1")
    assert not compiled.load("kaspar.records.core").IS_COMPILED


def test_form_in_use_is_known() -> None:
    assert compiled.forms()["kaspar.records.core"] == ("compiled" if batch.core.IS_COMPILED else "interpreted")
