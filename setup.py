"""Builds the compiled core: the few modules, in Cython's pure Python mode, whose loops look at every byte or record.

A compiled module is named after the hash of its source (see kaspar/base/compiled.py), so an extension that is older
than its source can never be loaded in its place. Without a C compiler the install still succeeds, only slower.
"""

import hashlib
import re
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCE_ROOT = Path(__file__).parent / "src"
COMPILED_MODULES = [line for line in (SOURCE_ROOT / "kaspar/base/compiled_modules.txt").read_text().split() if line]


def extension(module: str) -> Extension:
    source = SOURCE_ROOT / (module.replace(".", "/") + ".py")
    package, _, name = module.rpartition(".")
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:12]
    return Extension(
        f"{package}._{name}_{digest}",
        [str(source.relative_to(Path(__file__).parent))],
        extra_compile_args=["-O3"],
        optional=True,
    )


class BuildExtensions(build_ext):
    def run(self) -> None:
        super().run()
        if self.inplace:
            self._remove_stale()

    def _remove_stale(self) -> None:
        """After the new ones are there, so that whoever runs meanwhile finds one or the other."""
        current = {extension.name.rpartition(".")[2] for extension in self.extensions}
        for module in COMPILED_MODULES:
            package, _, name = module.rpartition(".")
            for built in (SOURCE_ROOT / package.replace(".", "/")).glob(f"_{name}_*.so"):
                stem = built.name.partition(".")[0]
                if re.fullmatch(rf"_{name}_[0-9a-f]{{12}}", stem) and stem not in current:
                    built.unlink()


def extensions() -> list[Extension]:
    try:
        from Cython.Build import cythonize
    except ImportError:
        print("Cython is not here: the core will run interpreted.", file=sys.stderr)
        return []
    return cythonize(  # type: ignore[no-any-return]
        [extension(module) for module in COMPILED_MODULES],
        build_dir="build/cython",
        compiler_directives={
            "language_level": "3",
            "boundscheck": False,
            "wraparound": False,
            "cdivision": True,
            "initializedcheck": False,
            "freethreading_compatible": False,
        },
    )


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildExtensions})
