"""The formats of keys and values: bytes, string, json, avro, protobuf, decoded into Arrow columns of Spark types.

`FormatOptions` is what the user declared for the key or the value. `decoder_of` creates its decoder, on the driver for
the type of the column and in every task for its rows. In a task, decoding.py passes the raw batches through both
decoders; records that cannot be decoded stop the query or are written to the dead-letter topic. Spark starts many
Python processes, most of which only parse options, so no code of a codec or a task is loaded before it is used.
"""

from kaspar.spark.formats.declared import Field, FormatOptions
from kaspar.spark.formats.declared_decoders import decoder_of
from kaspar.spark.formats.decoder import Decoded, Decoder

__all__ = ["Decoded", "Decoder", "Field", "FormatOptions", "decoder_of"]
