"""Chooses the compiled or the interpreted form of a module of the compiled core.

Inlined modules have no compiled form of their own: setup.py derives a Cython declaration file from each, and compiled
modules include its functions and constants in their own C code.

An extension has the hash of its module's source and of all inlined modules in its name. So an extension built from
other sources cannot be loaded by mistake: it is refused. KASPAR_INTERPRETED=1 selects the interpreted form, for its
tests. KASPAR_COMPILED=1 (set in CI and benchmarks) makes a missing extension an error.

This file imports no other module of Kaspar, since setup.py runs it too.
"""

import hashlib
import importlib
import os
import re
import sys
from pathlib import Path
from types import ModuleType

_SOURCE_ROOT = Path(__file__).parents[2]
COMPILED_MODULES = (Path(__file__).parent / "compiled_modules.txt").read_text().split()
INLINED_MODULES = (Path(__file__).parent / "inlined_modules.txt").read_text().split()

EXTENSION_NAME = re.compile(r"_[a-z_]+_[0-9a-f]{12}")


class StaleExtensionError(ImportError):
    """The extension on disk was built from other sources."""


def source_of(module: str) -> Path:
    return _SOURCE_ROOT.joinpath(*module.split(".")).with_suffix(".py")


def extension_name(module: str) -> str:
    """The full name of the extension that is the compiled form of `module` with its current sources."""
    package, _, name = module.rpartition(".")
    digest = hashlib.sha256()
    for source in (module, *INLINED_MODULES):
        digest.update(source_of(source).read_bytes())
    return f"{package}._{name}_{digest.hexdigest()[:12]}"


def load(module: str) -> ModuleType:
    """Load the compiled form of `module`, or the interpreted one if there is no compiled form."""
    if os.environ.get("KASPAR_INTERPRETED") == "1":
        return importlib.import_module(module)
    compiled = extension_name(module)
    name = module.rpartition(".")[2]
    built = [
        entry for entry in os.listdir(source_of(module).parent) if re.fullmatch(rf"_{name}_[0-9a-f]{{12}}\..*so", entry)
    ]
    if any(entry.startswith(f"{compiled.rpartition('.')[2]}.") for entry in built):
        return importlib.import_module(compiled)
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
