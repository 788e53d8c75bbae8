"""Chooses the compiled or the interpreted form of a module of the compiled core.

A compiled module carries the hash of its source in its name, so a stale one cannot be loaded by mistake: it is refused
with a sentence. KASPAR_INTERPRETED=1 selects the interpreted form, for its tests. KASPAR_COMPILED=1 (set in CI and
benchmarks) makes a missing extension an error.
"""

import hashlib
import importlib
import os
import re
import sys
from pathlib import Path
from types import ModuleType

_PACKAGE_ROOT = Path(__file__).parent.parent
COMPILED_MODULES = (Path(__file__).parent / "compiled_modules.txt").read_text().split()


class StaleExtensionError(ImportError):
    """The extension on disk was built from another version of its source."""


def load(module: str) -> ModuleType:
    """The compiled form of `module` if it is there and current, otherwise the interpreted one."""
    if os.environ.get("KASPAR_INTERPRETED") == "1":
        return importlib.import_module(module)
    package, _, name = module.rpartition(".")
    folder = _PACKAGE_ROOT.joinpath(*package.split(".")[1:])
    digest = hashlib.sha256((folder / f"{name}.py").read_bytes()).hexdigest()[:12]
    compiled = f"_{name}_{digest}"
    built = [entry for entry in os.listdir(folder) if re.fullmatch(rf"_{name}_[0-9a-f]{{12}}\..*so", entry)]
    if any(entry.startswith(f"{compiled}.") for entry in built):
        return importlib.import_module(f"{package}.{compiled}")
    if built:
        raise StaleExtensionError(f"the compiled form of {module} is older than its source: run 'make install' again")
    if os.environ.get("KASPAR_COMPILED") == "1":
        raise ImportError(f"the compiled form of {module} is missing: run 'make install' with a C compiler")
    return importlib.import_module(module)


def forms() -> dict[str, str]:
    """For each module of the compiled core, which form is in use: 'compiled', 'interpreted' or 'not loaded'."""
    result = {}
    for module in COMPILED_MODULES:
        package, _, name = module.rpartition(".")
        if any(re.fullmatch(rf"{re.escape(package)}\._{name}_[0-9a-f]{{12}}", loaded) for loaded in tuple(sys.modules)):
            result[module] = "compiled"
        else:
            result[module] = "interpreted" if module in sys.modules else "not loaded"
    return result
