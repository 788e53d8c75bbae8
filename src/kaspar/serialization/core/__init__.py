"""The part that is compiled, for Spark's columns; this is the one place that chooses between its two forms.

Import the module from here (`from kaspar.serialization.core import avro_filling`), never its contents by path.
"""

from typing import TYPE_CHECKING

from kaspar.base.compiled import load

if TYPE_CHECKING:
    from kaspar.serialization.core import avro_filling
else:
    avro_filling = load("kaspar.serialization.core.avro_filling")

__all__ = ["avro_filling"]
