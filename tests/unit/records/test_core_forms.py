"""Which form of the compiled core is loaded, and that an extension older than its sources never is."""

import shutil
import sysconfig
from pathlib import Path

import pytest

from kaspar.base import compiled
from kaspar.records.core import checking

SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
MODULE = "kaspar.records.core.checking"
SOURCE = compiled.source_of(MODULE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where load() looks for the compiled form of a module: there are only sources."""
    sources = {module: compiled.source_of(module) for module in (MODULE, *compiled.INLINED_MODULES)}
    monkeypatch.setattr(compiled, "_SOURCE_ROOT", tmp_path)
    for module, source in sources.items():
        compiled.source_of(module).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, compiled.source_of(module))
    monkeypatch.delenv("KASPAR_INTERPRETED", raising=False)
    monkeypatch.delenv("KASPAR_COMPILED", raising=False)
    return compiled.source_of(MODULE).parent


def test_extension_of_another_source_is_refused(folder: Path) -> None:
    (folder / f"_checking_{'0' * 12}{SUFFIX}").touch()
    with pytest.raises(compiled.StaleExtensionError, match="older than its source"):
        compiled.load(MODULE)


@pytest.mark.parametrize("changed", [MODULE, *compiled.INLINED_MODULES])
def test_extension_is_stale_as_soon_as_a_source_changes(folder: Path, changed: str) -> None:
    built = [file for file in SOURCE.parent.iterdir() if file.name.startswith("_checking_") and file.suffix == ".so"]
    if not built:
        pytest.skip("there is no compiled form here")
    shutil.copy(built[0], folder)
    with compiled.source_of(changed).open("a") as source:
        source.write("# changed\n")
    with pytest.raises(compiled.StaleExtensionError):
        compiled.load(MODULE)


def test_interpreted_form_is_used_where_nothing_was_compiled(folder: Path) -> None:
    assert compiled.load(MODULE).__name__ == MODULE


def test_missing_extension_is_an_error_where_it_is_required(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KASPAR_COMPILED", "1")
    with pytest.raises(ImportError, match="is missing"):
        compiled.load(MODULE)


def test_interpreted_form_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KASPAR_INTERPRETED", "1")
    assert not compiled.load(MODULE).IS_COMPILED


def test_form_in_use_is_known() -> None:
    assert compiled.forms()[MODULE] == ("compiled" if checking.IS_COMPILED else "interpreted")
