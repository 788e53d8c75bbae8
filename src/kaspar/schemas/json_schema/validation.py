"""Validates values against a parsed schema, like Confluent's JSON Schema serializer before it writes them.

Formats are annotations and are not checked. Schemas and values are untrusted, so the work is bounded: the number of
subschemas and patterns that are tried on a value, and the depth. Patterns are matched in time proportional to the text,
or within a step limit.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kaspar.base.errors import KasparError
from kaspar.schemas.json_schema.nodes import (
    AnySchema,
    ArraySchema,
    BooleanSchema,
    CombinedSchema,
    ConditionalSchema,
    ConstSchema,
    Criterion,
    EnumSchema,
    FalseSchema,
    NotSchema,
    NullSchema,
    NumberSchema,
    ObjectSchema,
    ReferenceSchema,
    Schema,
    StringSchema,
)
from kaspar.schemas.json_schema.parsing import JsonSchema
from kaspar.schemas.json_schema.patterns import UncheckablePattern, backtracks, matches
from kaspar.schemas.json_schema.scalar_values import number_problem, string_problem
from kaspar.schemas.json_schema.values import identity

MAX_STEPS: Final = 100_000
"""The limit for one value, which takes about 0.4 seconds."""
_STEPS_AT_ONCE: Final = 8
"""The number of steps between two calls of `should_stop`."""

ShouldStop = Callable[[], bool]


class InvalidValue(KasparError):
    """The value does not fit the schema, or this cannot be determined."""


class Stopped(KasparError):
    """The check was stopped before it was finished."""


def check_value(schema: JsonSchema, value: object, should_stop: ShouldStop | None = None) -> None:
    """Check a value as returned by `json`: dicts with strings as keys, lists, strings, numbers (also decimals),
    booleans and None. Raises InvalidValue with the place of the first problem. `should_stop` is called repeatedly; if
    it returns True, Stopped is raised. With it, Stopped is also raised for patterns that can take long by themselves.
    """
    try:
        failure = _Check(should_stop).failure(schema.root, value, None)
    except RecursionError:
        raise InvalidValue("The value, or the schema, is nested too deeply to check it") from None
    except UncheckablePattern as error:
        raise InvalidValue(str(error)) from None
    if failure is not None:
        raise InvalidValue(str(failure))


@dataclass(frozen=True, slots=True)
class _Failure:
    problem: str
    path: tuple[str, ...] = ()

    def below(self, step: str | int) -> "_Failure":
        return _Failure(self.problem, (str(step), *self.path))

    def __str__(self) -> str:
        return f"#/{'/'.join(self.path)}: {self.problem}"


@dataclass(slots=True)
class _Evaluated:
    """The properties and items that some keyword has evaluated, for `unevaluatedProperties` and `unevaluatedItems`."""

    properties: set[str] = field(default_factory=set)
    items: set[int] = field(default_factory=set)

    def add(self, other: "_Evaluated") -> None:
        self.properties |= other.properties
        self.items |= other.items


class _Check:
    """The check of one value."""

    def __init__(self, should_stop: ShouldStop | None) -> None:
        self._steps = 0
        self._should_stop = should_stop
        self._next_stop = MAX_STEPS if should_stop is None else _STEPS_AT_ONCE

    def _step(self) -> None:
        self._steps += 1
        if self._steps > self._next_stop:
            self._maybe_stop()

    def _maybe_stop(self) -> None:
        if self._steps > MAX_STEPS:
            raise InvalidValue("The value takes too many steps to check")
        if self._should_stop is not None and self._should_stop():
            raise Stopped
        self._next_stop = min(self._steps + _STEPS_AT_ONCE, MAX_STEPS)

    def failure(self, schema: Schema, value: object, outer: _Evaluated | None) -> _Failure | None:
        """Why the value does not fit the schema, or None. If it fits, what was evaluated is added to `outer`."""
        self._steps += 1
        if self._steps > self._next_stop:
            self._maybe_stop()
        if isinstance(schema, _LEAVES):
            return self._leaf(schema, value)
        evaluated = _Evaluated()
        found = self._part(schema, value, evaluated) or self._unevaluated(schema, value, evaluated)
        if found is None and outer is not None:
            outer.add(evaluated)
        return found

    def _part(self, schema: Schema, value: object, evaluated: _Evaluated) -> _Failure | None:
        """Why the value does not fit one kind of the schema's keywords, or None."""
        match schema:
            case ReferenceSchema():
                return self.failure(schema.target.schema, value, evaluated)
            case ObjectSchema():
                if isinstance(value, Mapping):
                    return self._object(schema, value, evaluated)
                return _Failure("is not an object") if schema.required_type else None
            case ArraySchema():
                if isinstance(value, list | tuple):
                    return self._array(schema, value, evaluated)
                return _Failure("is not an array") if schema.required_type else None
            case CombinedSchema():
                return self._combined(schema, value, evaluated)
            case ConditionalSchema():
                return self._conditional(schema, value, evaluated)
            case NotSchema():
                fits = self.failure(schema.negated.schema, value, None) is None
                return _Failure("fits the schema that it must not fit") if fits else None
            case _:
                return self._leaf(schema, value)

    def _leaf(self, schema: Schema, value: object) -> _Failure | None:
        if isinstance(schema, StringSchema) and schema.pattern is not None:
            self._before_match(schema.pattern)
        return _leaf_failure(schema, value)

    def _combined(self, schema: CombinedSchema, value: object, evaluated: _Evaluated) -> _Failure | None:
        if schema.generated:
            failures = [self._part(link.schema, value, evaluated) for link in schema.subschemas]
        else:
            failures = [self.failure(link.schema, value, evaluated) for link in schema.subschemas]
        fitting = sum(failure is None for failure in failures)
        match schema.criterion:
            case Criterion.ALL:
                return next((failure for failure in failures if failure is not None), None)
            case Criterion.ANY if not fitting:
                only = failures[0] if len(failures) == 1 else None
                return only or _Failure("has none of the types" if schema.generated else "fits no schema of anyOf")
            case Criterion.ONE if fitting != 1:
                return _Failure(f"fits {fitting} schemas of oneOf")
            case _:
                return None

    def _conditional(self, schema: ConditionalSchema, value: object, evaluated: _Evaluated) -> _Failure | None:
        if schema.condition is None:
            return None
        fits = self.failure(schema.condition.schema, value, evaluated) is None
        branch = schema.consequence if fits else schema.alternative
        return None if branch is None else self.failure(branch.schema, value, evaluated)

    def _object(self, schema: ObjectSchema, value: Mapping[str, object], evaluated: _Evaluated) -> _Failure | None:
        if problem := _members_problem(schema, value):
            return _Failure(problem)
        for name, member in value.items():
            if found := self._member(schema, name, member, evaluated):
                return found.below(name)
        for name, link in schema.dependent_schemas.items():
            if name in value and (found := self.failure(link.schema, value, evaluated)):
                return found
        return None

    def _member(self, schema: ObjectSchema, name: str, value: object, evaluated: _Evaluated) -> _Failure | None:
        schemas = [link.schema for pattern, link in schema.patterns.items() if self._matches(pattern, name)]
        if name in schema.properties:
            schemas.append(schema.properties[name].schema)
        if not schemas and not schema.allows_additional:
            return _Failure("is not allowed")
        if not schemas and schema.additional is not None:
            schemas.append(schema.additional.schema)
        if schemas or schema.evaluates_all:
            evaluated.properties.add(name)
        if schema.property_names is not None and (found := self.failure(schema.property_names.schema, name, None)):
            return _Failure(f"the name {found.problem}")
        return self._first(schemas, value)

    def _matches(self, pattern: str, name: str) -> bool:
        self._step()
        self._before_match(pattern)
        return matches(pattern, name)

    def _before_match(self, pattern: str) -> None:
        if self._should_stop is not None and backtracks(pattern):
            raise Stopped

    def _first(self, schemas: Iterable[Schema], value: object) -> _Failure | None:
        for schema in schemas:
            if found := self.failure(schema, value, None):
                return found
        return None

    def _array(self, schema: ArraySchema, value: Sequence[object], evaluated: _Evaluated) -> _Failure | None:
        if problem := self._items_problem(schema, value):
            return _Failure(problem)
        for i, item in enumerate(value):
            of_item = _schemas_of_item(schema, i)
            if of_item is None:
                return _Failure("is not allowed").below(i)
            if of_item or schema.evaluates_all:
                evaluated.items.add(i)
            if found := self._first(of_item, item):
                return found.below(i)
        return self._contains(schema, value, evaluated)

    def _items_problem(self, schema: ArraySchema, value: Sequence[object]) -> str | None:
        if schema.min_items is not None and len(value) < schema.min_items:
            return f"has fewer than {schema.min_items} items"
        if schema.max_items is not None and len(value) > schema.max_items:
            return f"has more than {schema.max_items} items"
        if schema.unique:
            self._steps += len(value)
            if len(set(map(identity, value))) < len(value):
                return "has equal items"
        return None

    def _contains(self, schema: ArraySchema, value: Sequence[object], evaluated: _Evaluated) -> _Failure | None:
        if schema.contains is None:
            return None
        contained = schema.contains.schema
        fitting = {i for i, item in enumerate(value) if self.failure(contained, item, None) is None}
        evaluated.items |= fitting
        if len(fitting) < (1 if schema.min_contains is None else schema.min_contains):
            return _Failure("does not contain enough items of `contains`")
        if schema.max_contains is not None and len(fitting) > schema.max_contains:
            return _Failure("contains too many items of `contains`")
        return None

    def _unevaluated(self, schema: Schema, value: object, evaluated: _Evaluated) -> _Failure | None:
        """Check `unevaluatedProperties` and `unevaluatedItems`, after all other keywords of the schema."""
        match schema, value:
            case CombinedSchema(generated=True), _:
                for link in schema.subschemas:
                    if found := self._unevaluated(link.schema, value, evaluated):
                        return found
            case ObjectSchema(), Mapping() if schema.unevaluated is not None:
                for name in value:
                    unevaluated = name not in evaluated.properties
                    if unevaluated and (found := self.failure(schema.unevaluated.schema, value[name], None)):
                        return found.below(name)
                evaluated.properties.update(value)
            case ArraySchema(), list() | tuple() if schema.unevaluated is not None:
                for i in range(len(value)):
                    if i not in evaluated.items and (found := self.failure(schema.unevaluated.schema, value[i], None)):
                        return found.below(i)
                evaluated.items.update(range(len(value)))
        return None


def _schemas_of_item(schema: ArraySchema, i: int) -> list[Schema] | None:
    """The schemas of one item; None if there must not be such an item."""
    if i < len(schema.items):
        return [schema.items[i].schema]
    if schema.all_items is not None:
        return [schema.all_items.schema]
    if not schema.checks_additional:
        return []
    if not schema.allows_additional:
        return None
    return [] if schema.additional is None else [schema.additional.schema]


def _members_problem(schema: ObjectSchema, value: Mapping[str, object]) -> str | None:
    if schema.min_properties is not None and len(value) < schema.min_properties:
        return f"has fewer than {schema.min_properties} properties"
    if schema.max_properties is not None and len(value) > schema.max_properties:
        return f"has more than {schema.max_properties} properties"
    if missing := schema.required - value.keys():
        return f"lacks the required property {min(missing)!r}"
    for name, names in schema.dependent_required.items():
        if name in value and (missing := names - value.keys()):
            return f"lacks the property {min(missing)!r}, which {name!r} requires"
    return None


_LEAVES: Final = (
    StringSchema,
    NumberSchema,
    EnumSchema,
    ConstSchema,
    NullSchema,
    BooleanSchema,
    AnySchema,
    FalseSchema,
)
"""Schemas without subschemas, which evaluate nothing."""


def _leaf_failure(schema: Schema, value: object) -> _Failure | None:
    problem = _leaf_problem(schema, value)
    return None if problem is None else _Failure(problem)


def _leaf_problem(schema: Schema, value: object) -> str | None:
    match schema:
        case AnySchema():
            return None
        case NullSchema():
            return None if value is None else "is not null"
        case BooleanSchema():
            return None if isinstance(value, bool) else "is not a boolean"
        case StringSchema():
            return string_problem(schema, value)
        case NumberSchema():
            return number_problem(schema, value)
        case EnumSchema():
            return None if identity(value) in schema.values else "is not in the enum"
        case ConstSchema():
            return None if identity(value) == schema.value else "is not the constant"
        case FalseSchema():
            return "is not allowed"
        case _:
            raise AssertionError(schema)
