"""The compiled part, for Spark's columns. This is the only place that chooses between its compiled and its Python form.

Import the module from here (`from kaspar.serialization.core import avro_filling`), never its contents by path.
"""

from typing import TYPE_CHECKING

from kaspar.base.compiled import load

if TYPE_CHECKING:
    from kaspar.serialization.core import avro_filling
else:
    avro_filling = load("kaspar.serialization.core.avro_filling")

__all__ = ["avro_filling"]
