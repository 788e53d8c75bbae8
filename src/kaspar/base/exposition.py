"""Metric families declared once, and the Prometheus text format (0.0.4) written from them.

prometheus_client is not used: its collectors create an object for each sample, which for thousands of partitions takes
ten times as long, and hold the GIL meanwhile.

The page is rendered in chunks, so that the caller can let other threads run in between.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Generic, TypeVar

from kaspar.base.metrics import PERCENTILES, Distribution

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
CHUNK_LINES: Final = 1000  # about half a millisecond of work

Source = TypeVar("Source")
Sample = tuple[str, float]
"""The rest of a line after the family's name: an optional suffix, the labels as `labels()` writes them, and the
value."""


class Kind(Enum):
    COUNTER = "counter"
    GAUGE = "gauge"
    SUMMARY = "summary"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Family(Generic[Source]):
    """One metric: its declaration, and how its samples are read from `Source`."""

    name: str
    kind: Kind
    help: str
    samples: Callable[[Source], Iterable[Sample]]
    label_names: tuple[str, ...] = ()
    kafka_name: str = ""
    """The MBean of this metric in Apache Kafka; empty if only Kaspar has it."""


def labels(**values: object) -> str:
    """Label names and values in the text format: `{topic="t",partition="0"}`."""
    return "{" + ",".join(f'{name}="{escape_label(str(value))}"' for name, value in values.items()) + "}"


def escape_label(value: str) -> str:
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return value


def escape_help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


# As the usual rules of Prometheus' JMX exporter convert 50thPercentile and 999thPercentile to labels.
QUANTILE_LABELS: Final = tuple(f"{fraction:.2f}" if fraction < 0.999 else f"{fraction}" for fraction in PERCENTILES)


def summary_samples(distribution: Distribution, label_text: str = "", *, factor: float = 1) -> Iterator[Sample]:
    """Quantiles of the window, total sum and count. A `factor` of 1000 converts seconds to milliseconds."""
    start = f"{label_text[:-1]}," if label_text else "{"
    for quantile, value in zip(QUANTILE_LABELS, distribution.percentiles(), strict=True):
        yield f'{start}quantile="{quantile}"}}', value * factor
    yield f"_sum{label_text}", distribution.sum * factor
    yield f"_count{label_text}", distribution.count


_SUFFIXES: Final[dict[Kind, tuple[str, ...]]] = {
    Kind.SUMMARY: ("_sum", "_count"),
    Kind.HISTOGRAM: ("_bucket", "_sum", "_count"),
}


def is_selected(name: str, kind: Kind, names: Collection[str]) -> bool:
    """Whether `/metrics?name[]=...` selects this family, by its own name or by that of its samples. No name: all."""
    return not names or name in names or any(name + suffix in names for suffix in _SUFFIXES.get(kind, ()))


def select(families: Sequence[Family[Source]], names: Collection[str]) -> Sequence[Family[Source]]:
    """The families that `/metrics?name[]=...` selects; an unknown name is no error."""
    return [family for family in families if is_selected(family.name, family.kind, names)]


def render(families: Sequence[Family[Source]], source: Source) -> Iterator[bytes]:
    """The metrics page, in chunks: one for each family, more for a family of more than CHUNK_LINES lines."""
    lines: list[str] = []
    for family in families:
        name = family.name
        lines.append(f"# HELP {name} {escape_help(family.help)}\n# TYPE {name} {family.kind.value}\n")
        for label_text, value in family.samples(source):
            lines.append(f"{name}{label_text} {value}\n")
            if len(lines) >= CHUNK_LINES:
                yield "".join(lines).encode()
                lines.clear()
        yield "".join(lines).encode()
        lines.clear()
