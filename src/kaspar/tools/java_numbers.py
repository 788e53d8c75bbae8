"""Numbers as Java prints them."""

import math


def format_double(value: float) -> str:
    """As Double.toString does: with an exponent from 10^7 on and below 10^-3."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    precision = next(digits for digits in range(17) if float(f"{value:.{digits}e}") == value)
    mantissa, exponent = f"{value:.{max(precision, 1)}e}".split("e")
    return f"{mantissa}E{int(exponent)}"
