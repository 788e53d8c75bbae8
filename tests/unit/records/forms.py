"""Both forms of the compiled core, so that one test can run on each of them."""

import importlib
import os
from types import ModuleType

import pytest

from kaspar.base import compiled

FORMS = ["compiled", "interpreted"]


def core_in_form(form: str, module: str = "kaspar.records.core.checking") -> ModuleType:
    if form == "interpreted":
        return importlib.import_module(module)
    if os.environ.get("KASPAR_INTERPRETED") == "1":
        pytest.skip("KASPAR_INTERPRETED=1 leaves out the compiled form")
    core = compiled.load(module)
    if not core.IS_COMPILED:
        pytest.skip("there is no compiled form here")
    return core
