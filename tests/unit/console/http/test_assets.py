"""The files of the page."""

import gzip
import re

import pytest

from kaspar.console.http.assets import Assets
from kaspar.console.http.errors import CallFailed

SMALL = {"index.html": b"<!-- modulepreload --><script src={base}/js/app.js>", "js/app.js": b"x" * 1000, "a.css": b"y"}


def test_files_are_below_a_path_that_changes_with_any_of_them() -> None:
    assert Assets(SMALL).base == Assets(dict(reversed(SMALL.items()))).base
    assert Assets(SMALL).base != Assets({**SMALL, "a.css": b"z"}).base


def test_the_first_file_names_what_the_page_needs_at_once() -> None:
    assets = Assets({**SMALL, "views/topics.js": b""})
    first = assets.first.content.decode()
    assert f'<link rel="modulepreload" href="{assets.base}/js/app.js">' in first
    assert f"<script src={assets.base}/js/app.js>" in first
    assert "topics" not in first, "views are loaded when they are opened"


def test_browsers_keep_all_but_the_first_and_ask_whether_that_has_changed() -> None:
    assets = Assets(SMALL)
    file = assets.find(f"{assets.base}/js/app.js")
    assert "immutable" in file.response({"headers": []}).headers["cache-control"]
    assert assets.first.response({"headers": []}).headers["cache-control"] == "no-cache"
    unchanged = assets.first.response({"headers": [(b"if-none-match", assets.first.etag.encode())]})
    assert (unchanged.status_code, unchanged.body) == (304, b"")


def test_large_files_are_compressed_for_those_who_can_read_that() -> None:
    assets = Assets(SMALL)
    file = assets.find(f"{assets.base}/js/app.js")
    compressed = file.response({"headers": [(b"accept-encoding", b"gzip, br")]})
    assert compressed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(bytes(compressed.body)) == SMALL["js/app.js"]
    assert "content-encoding" not in file.response({"headers": []}).headers
    small = assets.find(f"{assets.base}/a.css").response({"headers": [(b"accept-encoding", b"gzip")]})
    assert "content-encoding" not in small.headers


@pytest.mark.parametrize(
    "path", ["/static/older/js/app.js", "{base}/js/nothing.js", "{base}/../settings.py", "{base}/index.html"]
)
def test_only_files_of_the_page_are_served(path: str) -> None:
    assets = Assets(SMALL)
    with pytest.raises(CallFailed) as failed:
        assets.find(path.replace("{base}", assets.base))
    assert failed.value.status == 404


def test_the_files_of_the_package_keep_the_policy() -> None:
    """What the browser would refuse is found here sooner."""
    assets = Assets.of_package()
    first = assets.first.content.decode()
    assert "style=" not in first
    assert not re.search(r"<script(?![^>]*\ssrc=)", first), "a script without a file"
    for path in re.findall(r'(?:href|src)="([^"]+)"', first):
        assert assets.find(path).content
    scripts = {path: asset.content.decode() for path, asset in assets._others.items() if path.endswith(".js")}
    own = {path: text for path, text in scripts.items() if not path.startswith("vendor/")}
    assert len(own) > 20
    for path, text in own.items():
        for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "new Function", "document.write"):
            assert forbidden not in text, f"{path} uses {forbidden}"
        assert not re.search(r"""["'`]https?://""", text), f"{path} names another host"


def test_every_module_that_a_script_imports_exists() -> None:
    assets = Assets.of_package()
    scripts = {path: asset.content.decode() for path, asset in assets._others.items() if path.endswith(".js")}
    for path, text in scripts.items():
        for target in re.findall(r'(?:from|import)\s*\(?\s*"(\.[^"]+)"', text):
            parts = [*path.split("/")[:-1]]
            for step in target.split("/"):
                if step == "..":
                    parts.pop()
                elif step != ".":
                    parts.append(step)
            assert "/".join(parts) in scripts, f"{path} imports {target}"
