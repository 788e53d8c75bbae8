"""The part of the formats that is compiled; this is the one place that chooses between its two forms.

Import the module from here (`from kaspar.spark.formats.core import avro_filling`), never its contents by path.
"""

from typing import TYPE_CHECKING

from kaspar.base.compiled import load

if TYPE_CHECKING:
    from kaspar.spark.formats.core import avro_filling
else:
    avro_filling = load("kaspar.spark.formats.core.avro_filling")

__all__ = ["avro_filling"]
