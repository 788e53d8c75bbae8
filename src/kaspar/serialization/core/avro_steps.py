"""Constants for the plan of a decoder (avro_program.py) and the compiled loop that follows it (avro_filling.py)."""

from typing import Final

# --- How a column is stored -------------------------------------------------------------------------------------------

BITS: Final = 0
INTS: Final = 1  # of 32 bits
LONGS: Final = 2  # of 64 bits
FLOATS: Final = 3
DOUBLES: Final = 4
DECIMALS: Final = 5  # of 128 bits
OCTETS: Final = 6
LISTS: Final = 7  # arrays have one inner column; maps have two, for keys and values
STRUCTS: Final = 8

# --- Steps: what is read ----------------------------------------------------------------------------------------------

NULL: Final = 0
BOOLEAN: Final = 1
INT: Final = 2
LONG: Final = 3
MILLIS: Final = 4  # a long, which is stored multiplied by a thousand
FLOAT: Final = 5
DOUBLE: Final = 6
BYTES: Final = 7
STRING: Final = 8
FIXED: Final = 9  # `number` is its size
ENUM: Final = 10  # the table has the stored number of each symbol, or -1 if the reader does not have the symbol
DECIMAL_BYTES: Final = 11  # the table has the high and the low half of the least number with too many digits
DECIMAL_FIXED: Final = 12  # the same, and `number` is its size
RECORD: Final = 13
ARRAY: Final = 14
MAP: Final = 15
UNION: Final = 16
DEFAULT: Final = 17  # the inner step reads the bytes of the default instead of the record's
REST: Final = 18  # all remaining bytes
REFUSED: Final = 19  # the reader's schema has no type for it

# --- What is wrong with a record --------------------------------------------------------------------------------------

FINE: Final = 0
ENDS_TOO_EARLY: Final = 1
BAD_NUMBER: Final = 2
TOO_LARGE: Final = 3
NOT_UTF8: Final = 4
NO_SUCH_BRANCH: Final = 5
NO_SUCH_SYMBOL: Final = 6
NEGATIVE_LENGTH: Final = 7
LEFT_OVER: Final = 8
NOT_IN_READER: Final = 9
COLUMN_FULL: Final = 10
TOO_DEEP: Final = 11

PROBLEMS: Final = {
    ENDS_TOO_EARLY: "it ends too early",
    TOO_LARGE: "a number is out of the range of its type",
    BAD_NUMBER: "a number has more than ten bytes",
    NOT_UTF8: "a string is not UTF-8",
    NO_SUCH_BRANCH: "the number of a union's branch is out of range",
    NO_SUCH_SYMBOL: "the number of an enum's symbol is out of range",
    NEGATIVE_LENGTH: "a length is negative",
    LEFT_OVER: "{left} bytes are left over",
    NOT_IN_READER: "it has a value for which the reader's schema has no type",
    COLUMN_FULL: "it has more values than fit a column",
    TOO_DEEP: "records are nested too deeply",
}
