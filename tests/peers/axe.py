"""axe-core, which finds what keeps people from using a page: downloaded with npm."""

import hashlib
import json
import tarfile
from pathlib import Path
from typing import Final

from tests.peers.downloads import StepError, cached, require_tool, run_step

_MANIFEST: Final = Path(__file__).with_name("axe.json")


def axe_source() -> str:
    """The script. Raises DownloadError, and ToolMissingError without npm."""
    return (cached("axe", [_MANIFEST], _build) / "axe.min.js").read_text()


def _build(folder: Path, attempt: int) -> None:
    manifest = json.loads(_MANIFEST.read_text())
    run_step([require_tool("npm"), "pack", "--silent", manifest["package"]], folder=folder)
    (archive,) = folder.glob("*.tgz")
    if hashlib.sha256(archive.read_bytes()).hexdigest() != manifest["sha256"]:
        raise StepError(f"{archive.name} is not the file that {_MANIFEST.name} names")
    with tarfile.open(archive) as packed:
        member = packed.extractfile("package/axe.min.js")
        assert member is not None
        (folder / "axe.min.js").write_bytes(member.read())
    archive.unlink()
