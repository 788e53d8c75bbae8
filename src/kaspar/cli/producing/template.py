"""Templates for test data: text with {{fakers}}, compiled once and rendered for each record.

{"user": "{{name}}", "amount": {{float 1 100}}, "state": "{{choice paid open 'sent back'}}", "at": "{{now}}"}
"""

import difflib
import re
import shlex
from dataclasses import dataclass
from typing import Final

from kaspar.cli.producing.fakers import FAKERS, Draw, Fake

_PIECE: Final = re.compile(r"\{\{(?P<call>.*?)\}\}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Template:
    _pieces: tuple[str | Fake, ...]

    def render(self, draw: Draw) -> str:
        return "".join(piece if isinstance(piece, str) else piece(draw) for piece in self._pieces)


def parse_template(text: str) -> Template:
    """Parse a template. Raises ValueError with a message for users."""
    pieces: list[str | Fake] = []
    position = 0
    for match in _PIECE.finditer(text):
        pieces += [text[position : match.start()], _fake(match["call"])]
        position = match.end()
    rest = text[position:]
    if "{{" in rest:
        raise ValueError(f"'{rest[rest.index('{{') :][:40]}' is not closed: add }}}}")
    return Template(tuple(piece for piece in (*pieces, rest) if piece != ""))


def _fake(call: str) -> Fake:
    try:
        name, *arguments = shlex.split(call)
    except ValueError as problem:  # an empty placeholder, or an unclosed quote
        raise ValueError(f"'{{{{{call}}}}}' is not a name with arguments: {problem}") from None
    faker = FAKERS.get(name)
    if faker is None:
        near = difflib.get_close_matches(name, FAKERS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"valid names: {', '.join(sorted(FAKERS))}"
        raise ValueError(f"unknown placeholder '{name}': {hint}")
    try:
        return faker.make(arguments)
    except (TypeError, ValueError, OverflowError) as problem:
        reason = "" if isinstance(problem, TypeError) else f": {problem}"
        usage = f"{{{{{faker.name} {faker.arguments}".rstrip() + "}}"
        raise ValueError(f"'{{{{{call.strip()}}}}}' does not match {usage}{reason}") from None
