"""What the bytes of keys and values mean: bytes, string, json, avro, protobuf, decoded into Arrow columns of Spark's types.

`FormatOptions` says what a user declared for the key or the value; `decoder_of` makes the decoder of it, on the driver for
the column's type and in every task for its rows; `decoded` puts a task's raw batches through both decoders and takes care
of records that do not fit: the query stops with a sentence, or they go to the dead-letter topic. Codecs load their
libraries when they are used, since Spark starts Python processes all the time.
"""

from kaspar.spark.formats.decoder import Decoded, Decoder
from kaspar.spark.formats.declared import Field, FormatOptions, decoder_of
from kaspar.spark.formats.decoding import UndecodableRecord, decoded, raw_columns

__all__ = ["Decoded", "Decoder", "Field", "FormatOptions", "UndecodableRecord", "decoded", "decoder_of", "raw_columns"]
