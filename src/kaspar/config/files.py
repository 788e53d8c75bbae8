"""Settings from a `server.properties` file and from `--override key=value`.

The file's syntax is that of Java properties. A name that nobody knows is a warning with the closest known one, because
it is most likely a typing error; a wrong value stops the start, because the broker would not be what its owner means.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from kaspar.base.errors import InvalidSetting
from kaspar.config.broker import BrokerConfig
from kaspar.config.broker.former import FORMER_SETTINGS

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANK = " \t\f"
_LISTENER_PREFIX = re.compile(r"listener\.name\.[^.]+\.(?:(?:plain|scram-sha-256|scram-sha-512|oauthbearer|gssapi)\.)?")


def read_properties(text: str) -> dict[str, str]:
    """The keys and values of a Java properties text. Of a key that comes twice, the last counts."""
    return dict(_key_and_value(line) for line in _logical_lines(text))


def load_settings(file: Path | None, overrides: Iterable[str] = ()) -> dict[str, str]:
    """The settings of a file, with `key=value` overrides on top. Raises InvalidSetting with a sentence."""
    values: dict[str, str] = {}
    if file is not None:
        try:
            values = read_properties(file.read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            raise InvalidSetting(f"{file} is not a text file in UTF-8") from None
        except OSError as problem:
            raise InvalidSetting(f"{file} cannot be read: {problem.strerror}") from None
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals or not key.strip():
            raise InvalidSetting(f"--override {override!r} is not of the form key=value")
        values[key.strip()] = value.strip()
    return values


def warnings_about(values: Mapping[str, str]) -> list[str]:
    """A sentence for each name that is not known and each known one that has no effect, in the order of the file."""
    sentences = []
    for name in values:
        declaration = BrokerConfig.declared.get(_without_listener(name))
        if declaration is not None:
            if declaration.not_honoured:
                sentences.append(f"{name} has no effect: {declaration.not_honoured}")
        elif name in FORMER_SETTINGS:
            sentences.append(f"{name} has no effect: {FORMER_SETTINGS[name]}.")
        else:
            closest = difflib.get_close_matches(name, BrokerConfig.declared, n=1, cutoff=0.7)
            meant = f" Did you mean {closest[0]}?" if closest else ""
            sentences.append(f"{name} is not a known setting and has no effect.{meant}")
    return sentences


def _without_listener(name: str) -> str:
    return _LISTENER_PREFIX.sub("", name, count=1)


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without comments and blank ones, each joined with the lines that continue it."""
    lines = iter(re.split(r"\r\n|\n|\r", text))
    for line in lines:
        line = line.lstrip(_BLANK)
        if not line or line[0] in "#!":
            continue
        while _continues(line):
            line = line[:-1] + next(lines, "").lstrip(_BLANK)
        yield line


def _continues(line: str) -> bool:
    """An odd number of backslashes at the end; an even number is that many escaped ones."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _key_and_value(line: str) -> tuple[str, str]:
    """The key ends at the first =, : or blank that is not escaped. Blanks around the separator belong to nobody."""
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANK:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANK)
    return _unescape(line[:end]), _unescape(rest)


def _unescape(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        if match[2] == "u":
            raise InvalidSetting(f"{text!r} holds \\u without four hexadecimal digits")
        return _ESCAPES.get(match[2], match[2])

    unescaped = re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.?))", plain, text)
    # Java writes a character outside the basic plane as two \u escapes.
    return unescaped.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
