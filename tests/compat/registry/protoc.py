"""Compiles .proto files as programs do before they are built: with protoc."""

from collections.abc import Mapping
from pathlib import Path

from grpc_tools import protoc  # type: ignore[import-untyped]

_BUNDLED = Path(protoc.__file__).parent / "_proto"


def descriptor_set(folder: Path, files: Mapping[str, str], main: str) -> bytes:
    """A FileDescriptorSet of one of these files with all that it imports. They are written to the folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    output = folder / "descriptors"
    options = [f"-I{folder}", f"-I{_BUNDLED}", "--include_imports", f"--descriptor_set_out={output}"]
    assert protoc.main(["protoc", *options, main]) == 0
    return output.read_bytes()
