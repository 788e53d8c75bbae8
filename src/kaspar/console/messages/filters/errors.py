"""Errors in the text of a filter, with their position."""

from kaspar.console.problems import Unacceptable


class FilterError(Unacceptable):
    """`column` counts characters from 1."""

    def __init__(self, message: str, column: int) -> None:
        super().__init__(f"Column {column}: {message}")
        self.message = message
        self.column = column
