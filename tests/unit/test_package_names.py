"""What a package exports can be imported under that name, whatever else was imported before."""

import importlib
import pkgutil
import types

import pytest

import kaspar

PACKAGES = [found.name for found in pkgutil.walk_packages(kaspar.__path__, "kaspar.") if found.ispkg]


@pytest.mark.parametrize("name", PACKAGES)
def test_no_exported_name_is_hidden_by_a_module(name: str) -> None:
    """`import package.module` sets the attribute `module` of the package, over whatever was there."""
    package = importlib.import_module(name)
    modules = {found.name for found in pkgutil.iter_modules(package.__path__)}
    exported = modules & set(getattr(package, "__all__", ()))
    assert {each for each in exported if not isinstance(getattr(package, each), types.ModuleType)} == set()
