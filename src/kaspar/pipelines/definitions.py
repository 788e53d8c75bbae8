"""Changes to the definitions in the folder, as commands make them. The host applies them."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from kaspar.base.errors import KasparError
from kaspar.pipelines.folder import Definition, Folder, Wanted, check_name
from kaspar.pipelines.programs import check_program


def add(folder: Folder, programs: Sequence[Path], arguments: Sequence[str], name: str | None = None) -> list[str]:
    """Define pipelines for these programs, and return their names. An existing pipeline is restarted, unless it is
    already running with the same arguments. If one program is refused, none is added."""
    if name is not None and len(programs) > 1:
        raise KasparError("--name can be used with a single program only: run a separate command for each program")
    named: dict[str, Definition] = {}
    with folder.changing():
        for program in programs:
            path = program.resolve()
            check_program(path)
            chosen = check_name(name or path.stem)
            if chosen in named:
                raise KasparError(f"two of the programs would have the name {chosen}: run one of them with --name")
            named[chosen] = _defined(folder, chosen, Definition(str(path), tuple(arguments), _next_generation()))
        for chosen, definition in named.items():
            folder.define(chosen, definition)
    return list(named)


def _defined(folder: Folder, name: str, new: Definition) -> Definition:
    earlier = folder.definition(name)
    if earlier is None:
        return new
    if earlier.program != new.program:
        raise KasparError(
            f"{name} is already the name of {earlier.program}: choose another with --name, or remove that one with "
            f"'kaspar pipeline remove {name}'"
        )
    is_as_it_was = earlier.wanted is Wanted.RUNNING and earlier.arguments == new.arguments
    if is_as_it_was and not folder.has_finished(name, earlier):
        return earlier
    return replace(new, generation=_next_generation(earlier))


def _next_generation(earlier: Definition | None = None) -> int:
    now_ms = time.time_ns() // 1_000_000
    return now_ms if earlier is None else max(now_ms, earlier.generation + 1)


def stop(folder: Folder, names: Sequence[str]) -> None:
    _change(folder, names, lambda definition: replace(definition, wanted=Wanted.STOPPED))


def _change(folder: Folder, names: Sequence[str], changed: Callable[[Definition], Definition]) -> None:
    """Change the definitions of these pipelines, or none of them if one does not exist."""
    with folder.changing():
        for name, definition in [(name, changed(known(folder, name))) for name in names]:
            folder.define(name, definition)


def restart(folder: Folder, names: Sequence[str]) -> None:
    _change(
        folder,
        names,
        lambda definition: replace(definition, wanted=Wanted.RUNNING, generation=_next_generation(definition)),
    )


def remove(folder: Folder, names: Sequence[str]) -> None:
    """Remove these pipelines, which must have ended, with their folders."""
    with folder.changing():
        for name in names:
            known(folder, name)
            folder.forget(name)


def known(folder: Folder, name: str) -> Definition:
    definition = folder.definition(name) if name in folder.names() else None
    if definition is None:
        there = ", ".join(folder.names()) or "none"
        raise KasparError(f"there is no pipeline {name} in {folder.path} (pipelines: {there})")
    return definition


def left_to_run(folder: Folder) -> list[str]:
    """The pipelines that a supervisor resumes: those that are neither stopped nor finished."""
    return [
        name
        for name, definition in folder.definitions().items()
        if definition.wanted is Wanted.RUNNING and not folder.has_finished(name, definition)
    ]


def finished_pipelines(folder: Folder) -> set[str]:
    """The pipelines whose programs have returned and that were not started since."""
    return {name for name, definition in folder.definitions().items() if folder.has_finished(name, definition)}
