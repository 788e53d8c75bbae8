"""Tables in the format of Kafka's ToolsUtils.prettyPrintTable: padded columns, each followed by a tab."""

from collections.abc import Iterator, Sequence


def plain_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    lines = [header, *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        yield "".join(f"{text:<{width}}\t" for text, width in zip(line, widths, strict=True))
