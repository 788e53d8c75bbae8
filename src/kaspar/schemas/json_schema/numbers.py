"""Exact arithmetic with the numbers of schemas and values."""

from decimal import Context, Decimal, InvalidOperation
from typing import Final

# Numbers of a schema have at most 1,000 digits. If a quotient needs more digits than this, the exponents are so far
# apart that multipleOf cannot have been meant this way.
_CONTEXT: Final = Context(prec=2_100)


def is_multiple(value: int | Decimal, divisor: int | Decimal) -> bool:
    if isinstance(value, int) and isinstance(divisor, int):
        return value % divisor == 0
    try:
        return _CONTEXT.remainder(Decimal(value), Decimal(divisor)) == 0
    except InvalidOperation:
        return False
