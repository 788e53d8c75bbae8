"""Archives of the classes that a Java program loads (JEP 350): with one, its JVM starts in little more than half the
time. They are kept beside the downloads. A JVM ignores an archive that is not of its version and its class path."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.peers.downloads import cached, require_tool

Train = Callable[[Path, Sequence[str]], None]
"""Runs the program in an empty folder, with these flags for its JVM, until it has loaded what it needs and ends."""


def archive_flags(name: str, manifests: Sequence[Path], train: Train) -> tuple[str, ...]:
    """The flags with which a program uses its archive, which is made now if it is not in the cache."""

    def make(folder: Path, attempt: int) -> None:
        del attempt
        training = folder / "training"
        training.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv("JDK_JAVA_OPTIONS", raising=False)  # it may name the archive of another program
            train(training, (f"-XX:ArchiveClassesAtExit={folder / 'classes.jsa'}", "-Xlog:disable"))
        shutil.rmtree(training)

    release = Path(require_tool("java")).resolve().parent.parent / "release"
    archive = cached(f"{name}-classes", [*manifests, *[release] * release.exists()], make) / "classes.jsa"
    return (f"-XX:SharedArchiveFile={archive}", "-Xlog:disable") if archive.exists() else ()
