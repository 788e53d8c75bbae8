"""kcat from Debian's package."""

from tests.peers.debian import not_found, require_packages
from tests.peers.downloads import require_tool


def kcat_path() -> str:
    require_packages(["kcat"], lambda: not_found(["kcat"]))
    return require_tool("kcat")
