"""What the bytes of keys and values mean: bytes, string, json, avro, protobuf, as Arrow columns of Spark's types.

`FormatOptions` says what a user declared for the key or the value; `decoder_of` makes the decoder of it, on the driver
for the column's type and in every task for its rows. In a task, decoding.py puts the raw batches through both decoders
and takes care of records that do not fit: the query stops with a sentence, or they go to the dead-letter topic. Spark
starts Python processes all the time, most of which only look at options: so nothing of a codec or of a task is loaded
before it is used.
"""

from kaspar.spark.formats.declared import Field, FormatOptions, decoder_of
from kaspar.spark.formats.decoder import Decoded, Decoder

__all__ = ["Decoded", "Decoder", "Field", "FormatOptions", "decoder_of"]
