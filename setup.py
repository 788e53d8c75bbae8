"""Builds the compiled core: the few modules, in Cython's pure Python mode, whose loops look at every byte or record.

What these modules share is in inlined modules, plain Python with C types. From each of them a declaration file (.pxd)
is derived here, which the compiled modules cimport: its functions become inline functions of their own C code. How an
extension is named is said in kaspar/base/compiled.py. Without a C compiler the install still succeeds, only slower.
"""

import ast
import hashlib
import runpy
import sys
import textwrap
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).parent
COMPILED = runpy.run_path(str(ROOT / "src/kaspar/base/compiled.py"))
BUILD = Path("build/cython")

C_TYPES = {
    "cython.bint": "bint",
    "cython.int": "int",
    "cython.longlong": "long long",
    "cython.ulonglong": "unsigned long long",
    "cython.Py_ssize_t": "Py_ssize_t",
    "cython.void": "void",
    "Octets": "const unsigned char[::1]",
    "WritableOctets": "unsigned char[::1]",
}


# --- Declarations of inlined modules ----------------------------------------------------------------------------------


def declarations(source: str) -> str:
    """The .pxd of an inlined module: its integers as constants, its named tuples as structs, its functions inline."""
    lines = ["cimport cython"]
    for node in ast.parse(source).body:
        match node:
            case ast.ImportFrom(module=str(module), names=names) if module in COMPILED["INLINED_MODULES"]:
                lines += [f"from {module} cimport {name.name}" for name in names if name.name not in C_TYPES]
            case ast.AnnAssign(target=ast.Name(name), value=ast.Constant(int(number))):
                lines.append(f"cdef enum:\n    {name} = {number}")
            case ast.ClassDef(name, bases=[ast.Name("NamedTuple")]):
                fields = [part for part in node.body if isinstance(part, ast.AnnAssign)]
                lines.append(f"ctypedef struct {name}:")
                lines += [f"    {c_type(field.annotation)} {ast.unparse(field.target)}" for field in fields]
            case ast.FunctionDef(name):
                parameters = ", ".join(f"{c_type(one.annotation)} {one.arg}" for one in node.args.args)
                lines.append(f"cdef inline {c_type(node.returns)} {name}({parameters}) noexcept nogil:")
                lines += [textwrap.indent(ast.unparse(statement), "    ") for statement in node.body]
    return "\n".join(lines) + "\n"


def c_type(annotation: ast.expr | None) -> str:
    assert annotation is not None, "everything in an inlined module has a C type"
    written = ast.unparse(annotation)
    return C_TYPES.get(written, written)


def write_declarations() -> Path:
    """Returns the folder to build in. Its name changes with the declarations, so nothing in it can be out of date."""
    derived = {
        module: declarations(COMPILED["source_of"](module).read_text()) for module in COMPILED["INLINED_MODULES"]
    }
    folder = BUILD / hashlib.sha256("".join(derived.values()).encode()).hexdigest()[:12]
    for module, text in derived.items():
        target = folder / "declarations" / (module.replace(".", "/") + ".pxd")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return folder


# --- Extensions -------------------------------------------------------------------------------------------------------


def extension(module: str) -> Extension:
    source = COMPILED["source_of"](module).relative_to(ROOT)
    return Extension(COMPILED["extension_name"](module), [str(source)], extra_compile_args=["-O3"])


class BuildExtensions(build_ext):
    def run(self) -> None:
        super().run()
        if self.inplace:
            self._remove_stale()

    def _remove_stale(self) -> None:
        """After the new ones are built, so that a process that starts meanwhile finds one or the other."""
        current = {extension.name.rpartition(".")[2] for extension in self.extensions}
        for built in (ROOT / "src/kaspar").rglob("*.so"):
            stem = built.name.partition(".")[0]
            if COMPILED["EXTENSION_NAME"].fullmatch(stem) and stem not in current:
                built.unlink()


def extensions() -> list[Extension]:
    try:
        from Cython.Build import cythonize
    except ImportError:
        print("Cython is not here: the core will run interpreted.", file=sys.stderr)
        return []
    folder = write_declarations()
    built: list[Extension] = cythonize(
        [extension(module) for module in COMPILED["COMPILED_MODULES"]],
        build_dir=str(folder),
        include_path=[str(folder / "declarations")],
        compiler_directives={
            "language_level": "3",
            "boundscheck": False,
            "wraparound": False,
            "cdivision": True,
            "initializedcheck": False,
            "freethreading_compatible": False,
        },
    )
    for one in built:
        one.optional = True  # cythonize makes new extensions, without this
    return built


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildExtensions})
