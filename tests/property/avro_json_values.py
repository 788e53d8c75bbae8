"""Values of Avro schemas for tests, in the JSON encoding."""

from typing import Any

from hypothesis import strategies as st

from kaspar.schemas.avro.types import Array, AvroType, Enumeration, Fixed, Map, Primitive, Record, Union

MAX_DEPTH = 6
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r"), max_size=5)
BYTES = st.binary(max_size=5).map(lambda data: data.decode("latin-1"))
_PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "bytes": BYTES,
    "string": TEXTS,
}


@st.composite
def values(draw: Any, node: AvroType, depth: int = 0) -> Any:
    """Recursive types end where they can, from a depth on."""
    is_deep = depth >= MAX_DEPTH
    match node:
        case Primitive():
            return draw(_PRIMITIVES[node.name])
        case Fixed():
            return draw(st.binary(min_size=node.size, max_size=node.size)).decode("latin-1")
        case Enumeration():
            return draw(st.sampled_from(node.symbols))
        case Array():
            count = 0 if is_deep else draw(st.integers(0, 3))
            return [draw(values(node.items, depth + 1)) for _ in range(count)]
        case Map():
            keys = [] if is_deep else draw(st.lists(TEXTS, max_size=3, unique=True))
            return {key: draw(values(node.values, depth + 1)) for key in keys}
        case Union():
            branches = [each for each in node.branches if not (is_deep and isinstance(each, Record))]
            branch = draw(st.sampled_from(branches or node.branches))
            return None if branch.kind == "null" else {branch.union_name: draw(values(branch, depth + 1))}
        case Record():
            return {field.name: draw(values(field.type, depth + 1)) for field in node.fields}
    raise AssertionError(node)
