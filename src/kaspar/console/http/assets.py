"""The files of the page, kept in memory.

All but the first are served below a path that contains a digest of all of them. So browsers may cache them for ever,
and a new version of the console has a new path. They refer to each other by relative paths.
"""

import gzip
import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from starlette.responses import Response

from kaspar.console.http.errors import CallFailed
from kaspar.web.asgi import Scope, header

STATIC: Final = "/static"
_FIRST: Final = "index.html"
_LINKS: Final = "<!-- modulepreload -->"
_BASE: Final = "{base}"
_PRELOADED: Final = ("js/", "vendor/")
_SERVED: Final = frozenset({".css", ".html", ".js", ".svg"})
_TYPES: Final = {".js": "text/javascript", ".svg": "image/svg+xml"}
_SMALL: Final = 500
"""Files of at most this many bytes are not compressed."""


@dataclass(frozen=True)
class Asset:
    content: bytes
    media_type: str
    cache_control: str

    @cached_property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.content).hexdigest()[:20]}"'

    @cached_property
    def compressed(self) -> bytes | None:
        return gzip.compress(self.content, mtime=0) if len(self.content) > _SMALL else None

    def response(self, scope: Scope) -> Response:
        headers = {"etag": self.etag, "cache-control": self.cache_control, "vary": "Accept-Encoding"}
        if (header(scope, b"if-none-match") or b"").decode("latin-1") == self.etag:
            return Response(status_code=304, headers=headers)
        if b"gzip" in (header(scope, b"accept-encoding") or b"") and self.compressed is not None:
            headers["content-encoding"] = "gzip"
            return Response(self.compressed, media_type=self.media_type, headers=headers)
        return Response(self.content, media_type=self.media_type, headers=headers)


class Assets:
    def __init__(self, contents: Mapping[str, bytes]) -> None:
        """`contents` has the files by their paths."""
        digest = hashlib.sha256()
        for path in sorted(contents):
            digest.update(f"{path}\0{len(contents[path])}\0".encode() + contents[path])
        self.base = f"{STATIC}/{digest.hexdigest()[:12]}"
        self.first = Asset(_first(contents, self.base), "text/html", "no-cache")
        self._others = {
            path: Asset(content, _media_type(path), "public, max-age=31536000, immutable")
            for path, content in contents.items()
            if path != _FIRST
        }

    @classmethod
    def of_package(cls) -> "Assets":
        return cls(dict(_contents(files("kaspar.console") / "assets", "")))

    def find(self, path: str) -> Asset:
        """The file at the path of a URL. Raises CallFailed (404)."""
        asset = self._others.get(path.removeprefix(f"{self.base}/"))
        if asset is None:
            raise CallFailed(404, f"Not found: {path}.")
        return asset


def _contents(folder: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found += _contents(entry, f"{prefix}{entry.name}/")
        elif "." + entry.name.rpartition(".")[2] in _SERVED:
            found.append((prefix + entry.name, entry.read_bytes()))
    return found


def _first(contents: Mapping[str, bytes], base: str) -> bytes:
    """The first file, with links that preload the modules which the page needs at once, not one by one."""
    needed = sorted(path for path in contents if path.startswith(_PRELOADED) and path.endswith(".js"))
    links = "\n    ".join(f'<link rel="modulepreload" href="{base}/{path}">' for path in needed)
    return contents[_FIRST].decode().replace(_LINKS, links).replace(_BASE, base).encode()


def _media_type(path: str) -> str:
    extension = path[path.rindex(".") :]
    return _TYPES.get(extension) or mimetypes.guess_type(path)[0] or "application/octet-stream"
