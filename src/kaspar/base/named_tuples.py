"""Named tuples on hot paths.

A named tuple's own constructor is Python code that only passes its arguments on, and takes three times as long as
`tuple.__new__`, which takes the fields in one tuple:

    new_tuple(RequestHeader, (api_key, api_version, correlation_id, client_id, position))

Fields with a default have to be given, and their number is not checked: use it where a profile shows the constructor.
"""

from typing import Final

__all__ = ["new_tuple"]

new_tuple: Final = tuple.__new__
