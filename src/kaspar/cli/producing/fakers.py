"""The placeholders of the template language, each declared once.

A faker is created once from its arguments and then generates a text for every record. All randomness comes from the
template's single generator, so a seed reproduces all records; only `now` and `recent` read the clock.
"""

import math
import random
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from kaspar.cli.producing.words import CITIES, COUNTRIES, FIRST_NAMES, LAST_NAMES, PRODUCTS, WORDS
from kaspar.cli.records.times import epoch_ms, parse_duration

_MOST: Final = 1_000_000
_MOST_DIGITS: Final = 100
_LONGEST_S: Final = 100 * 366 * 86400


@dataclass(frozen=True, slots=True)
class Draw:
    """The inputs of a faker for one record."""

    rng: random.Random
    number: int
    """0 for the first record."""
    now: datetime


Fake = Callable[[Draw], str]


@dataclass(frozen=True, slots=True)
class Faker:
    name: str
    arguments: str
    explanation: str
    make: Callable[[Sequence[str]], Fake]


FAKERS: Final[dict[str, Faker]] = {}


def _faker(name: str, arguments: str, explanation: str) -> Callable[[Callable[..., Fake]], Callable[..., Fake]]:
    """Declare a faker. Its arguments are passed as text. It raises TypeError for a wrong number of arguments, and
    ValueError for wrong values.
    """

    def declare(make: Callable[..., Fake]) -> Callable[..., Fake]:
        FAKERS[name] = Faker(name, arguments, explanation, lambda given: make(*given))
        return make

    return declare


def _choose_from(name: str, words: Sequence[str], explanation: str) -> None:
    _faker(name, "", explanation)(lambda: lambda draw: draw.rng.choice(words))


_choose_from("first_name", FIRST_NAMES, "a given name")
_choose_from("last_name", LAST_NAMES, "a family name")
_choose_from("city", CITIES, "a city")
_choose_from("country", COUNTRIES, "a country")
_choose_from("product", PRODUCTS, "a product name")
_choose_from("word", WORDS, "a word")


@_faker("name", "", "a given name and a family name")
def _name() -> Fake:
    return lambda draw: f"{draw.rng.choice(FIRST_NAMES)} {draw.rng.choice(LAST_NAMES)}"


@_faker("email", "", "an address at example.com")
def _email() -> Fake:
    return lambda draw: (
        f"{draw.rng.choice(FIRST_NAMES)}.{draw.rng.choice(LAST_NAMES)}{draw.rng.randrange(100)}@example.com".lower()
    )


@_faker("words", "COUNT", "N words")
def _words(count: str) -> Fake:
    number = _count(count, _MOST)
    return lambda draw: " ".join(draw.rng.choice(WORDS) for _ in range(number))


@_faker("uuid", "", "a random UUID")
def _uuid() -> Fake:
    return lambda draw: str(uuid.UUID(int=draw.rng.getrandbits(128), version=4))


@_faker("hex", "LENGTH", "N hexadecimal digits")
def _hex(length: str) -> Fake:
    digits = _count(length, _MOST)
    return lambda draw: "".join(draw.rng.choices("0123456789abcdef", k=digits))


@_faker("ip", "", "an IPv4 address of a private network")
def _ip() -> Fake:
    return lambda draw: f"10.{draw.rng.randrange(256)}.{draw.rng.randrange(256)}.{draw.rng.randrange(1, 255)}"


@_faker("seq", "[START [STEP]]", "1, 2, 3 and so on, or from START in steps of STEP")
def _seq(start: str = "1", step: str = "1") -> Fake:
    first, difference = int(start), int(step)
    return lambda draw: str(first + draw.number * difference)


@_faker("int", "LOW HIGH", "a whole number, both ends included")
def _int(low: str, high: str) -> Fake:
    lowest, highest = int(low), int(high)
    if lowest > highest:
        raise ValueError(f"{low} is above {high}")
    return lambda draw: str(draw.rng.randint(lowest, highest))


@_faker("float", "LOW HIGH [DIGITS]", "a number with DIGITS decimal places (default: 2)")
def _float(low: str, high: str, digits: str = "2") -> Fake:
    lowest, highest, precision = _finite(low), _finite(high), _count(digits, _MOST_DIGITS)
    return lambda draw: f"{draw.rng.uniform(lowest, highest):.{precision}f}"


@_faker("gauss", "MEAN DEVIATION [DIGITS]", "a normally distributed number")
def _gauss(mean: str, deviation: str, digits: str = "2") -> Fake:
    middle, spread, precision = _finite(mean), _finite(deviation), _count(digits, _MOST_DIGITS)
    return lambda draw: f"{draw.rng.gauss(middle, spread):.{precision}f}"


@_faker("bool", "[PROBABILITY]", "true or false; true with this probability (default: 0.5)")
def _bool(probability: str = "0.5") -> Fake:
    share = float(probability)
    if not 0 <= share <= 1:
        raise ValueError(f"{probability} is not between 0 and 1")
    return lambda draw: "true" if draw.rng.random() < share else "false"


@_faker("choice", "WORD...", "one of these words; a word given twice is chosen twice as often")
def _choice(*words: str) -> Fake:
    if not words:
        raise TypeError
    return lambda draw: draw.rng.choice(words)


@_faker("now", "[iso|ms|s]", "the time: 2026-11-17T10:00:00.123Z, or milliseconds or seconds since 1970")
def _now(form: str = "iso") -> Fake:
    shown = _time_form(form)
    return lambda draw: shown(draw.now)


@_faker("recent", "DURATION [iso|ms|s]", "a time within the last 10m, 2h or 1d")
def _recent(duration: str, form: str = "iso") -> Fake:
    longest_s, shown = parse_duration(duration).total_seconds(), _time_form(form)
    if longest_s > _LONGEST_S:
        raise ValueError(f"'{duration}' is more than a hundred years")
    return lambda draw: shown(draw.now - timedelta(seconds=draw.rng.uniform(0, longest_s)))


def _count(text: str, most: int) -> int:
    number = int(text)
    if not 0 <= number <= most:
        raise ValueError(f"{number} is not between 0 and {most}")
    return number


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a JSON number")
    return number


def _time_form(form: str) -> Callable[[datetime], str]:
    match form:
        case "iso":
            return lambda moment: moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case "ms":
            return lambda moment: str(epoch_ms(moment))
        case "s":
            return lambda moment: str(epoch_ms(moment) // 1000)
    raise ValueError(f"'{form}' is neither iso, ms nor s")
