"""Which partition of an internal topic a group or a transactional id belongs to: as in Kafka, by Java's hash."""


def partition_for(key: str, partition_count: int) -> int:
    return abs(_java_hash(key)) % partition_count


def _java_hash(text: str) -> int:
    """String.hashCode: over UTF-16 units, as a signed 32-bit number. The smallest number has no absolute value in Java,
    and Kafka uses zero for it.
    """
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFF_FFFF
    if value == 0x8000_0000:
        return 0
    return value if value < 0x8000_0000 else value - 0x1_0000_0000
