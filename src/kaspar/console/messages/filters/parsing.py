"""Parses the text of a filter by recursive descent, one method for each level of precedence:

or         and ("or" and)*
and        not ("and" not)*
not        "not" not | comparison
comparison sum (("==" | "<" | "in" | "contains" | "matches" | ...) sum)?
sum        product (("+" | "-") product)*
product    signed (("*" | "/" | "%") signed)*
signed     "-" signed | primary
primary    number | text | true | false | null | now | path | function "(" or ")" | "[" or, ... "]" | "(" or ")"
path       ("key" | "value" | ... | "$") ("." name | "[" index "]" | "[*]")*
"""

from typing import Any, Final, assert_never

import re2

from kaspar.console.messages.filters.errors import FilterError
from kaspar.console.messages.filters.tokens import Kind, Token, tokens_of
from kaspar.console.messages.filters.tree import (
    And,
    Arithmetic,
    Call,
    Compare,
    Comparison,
    Every,
    Field,
    Function,
    Items,
    Literal,
    Matches,
    Negated,
    Node,
    Not,
    Now,
    Operator,
    Or,
    Path,
    TextSearch,
)

MAX_DEPTH: Final = 30
"""The maximum nesting of parentheses, signs, `not`, lists and function calls."""

_LITERALS: Final = {"true": True, "false": False, "null": None}
_FIELDS: Final = {field.value: field for field in Field}
_FUNCTIONS: Final = {function.value: function for function in Function}
_COMPARISONS: Final = {comparison.value: comparison for comparison in Comparison}
_SUMS: Final = {"+": Operator.PLUS, "-": Operator.MINUS}
_PRODUCTS: Final = {"*": Operator.TIMES, "/": Operator.DIVIDED_BY, "%": Operator.MODULO}
_MATCHES: Final = "matches"
_WORDS: Final = frozenset({"and", "or", "not", "is", _MATCHES, *(name for name in _COMPARISONS if name.isalpha())})
_PATTERN_BYTES: Final = 1 << 20

_PATTERN_OPTIONS: Final = re2.Options()
_PATTERN_OPTIONS.log_errors = False
_PATTERN_OPTIONS.max_mem = _PATTERN_BYTES


def parse(text: str) -> Node:
    """The syntax tree of an expression. Raises FilterError, and nothing else."""
    parser = _Parser(tokens_of(text))
    node = parser.disjunction()
    if parser.current.kind is not Kind.END:
        raise parser.error(f"Unexpected {_shown(parser.current)}; join conditions with `and` or `or`.")
    return node


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._position = 0
        self._depth = 0

    @property
    def current(self) -> Token:
        return self._tokens[self._position]

    def error(self, message: str, token: Token | None = None) -> FilterError:
        return FilterError(message, (token or self.current).column)

    # --- conditions ---------------------------------------------------------------------------------------------------

    def disjunction(self) -> Node:
        first = self._conjunction()
        if not self._is_word("or"):
            return first
        conditions = [_condition(first)]
        while self._take_word("or"):
            conditions.append(_condition(self._conjunction()))
        return Or(tuple(conditions))

    def _conjunction(self) -> Node:
        first = self._negation()
        if not self._is_word("and"):
            return first
        conditions = [_condition(first)]
        while self._take_word("and"):
            conditions.append(_condition(self._negation()))
        return And(tuple(conditions))

    def _negation(self) -> Node:
        if not self._is_word("not"):
            return self._comparison()
        self._enter()
        self._advance()
        node = Not(_condition(self._negation()))
        self._leave()
        return node

    def _comparison(self) -> Node:
        left = self._sum()
        token = self.current
        if self._take_word("is"):
            return self._null_check(left)
        is_negated = self._is_word("not") and self._following().text in (_MATCHES, *_COMPARISONS)
        if is_negated:
            self._advance()
            token = self.current
        if token.kind not in (Kind.NAME, Kind.SYMBOL) or (token.text != _MATCHES and token.text not in _COMPARISONS):
            return left
        self._advance()
        if token.text == _MATCHES:
            node: Node = self._pattern(left)
        else:
            node = Compare(_COMPARISONS[token.text], left, self._sum())
        if self.current.text in _COMPARISONS and self.current.kind in (Kind.NAME, Kind.SYMBOL):
            raise self.error("Comparisons cannot be chained; join them with `and`.")
        return Not(node) if is_negated else node

    def _null_check(self, left: Node) -> Node:
        """`is null` and `is not null`, as in SQL."""
        is_negated = self._take_word("not")
        if not self._take_word("null"):
            raise self.error("`is` must be followed by `null` or `not null`.")
        node = Compare(Comparison.EQUAL, left, Literal(None))
        return Not(node) if is_negated else node

    def _pattern(self, left: Node) -> Matches:
        token = self.current
        if token.kind is not Kind.TEXT:
            raise self.error("`matches` needs a pattern in quotes.")
        self._advance()
        return Matches(left, token.text, self._compiled(token))

    def _compiled(self, token: Token) -> Any:
        try:
            return re2.compile(token.text, _PATTERN_OPTIONS)
        except re2.error as error:
            (reason,) = error.args
            words = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
            raise self.error(f"Invalid RE2 pattern: {words}.", token) from None
        except UnicodeEncodeError:
            raise self.error("Invalid RE2 pattern: it contains half of a surrogate pair.", token) from None

    # --- arithmetic ---------------------------------------------------------------------------------------------------

    def _sum(self) -> Node:
        first = self._product()
        rest = []
        while self.current.kind is Kind.SYMBOL and (operator := _SUMS.get(self.current.text)):
            self._advance()
            rest.append((operator, self._product()))
        return Arithmetic(first, tuple(rest)) if rest else first

    def _product(self) -> Node:
        first = self._signed()
        rest = []
        while self.current.kind is Kind.SYMBOL and (operator := _PRODUCTS.get(self.current.text)):
            self._advance()
            rest.append((operator, self._signed()))
        return Arithmetic(first, tuple(rest)) if rest else first

    def _signed(self) -> Node:
        if not self._take_symbol("-"):
            return self._primary()
        self._enter()
        node = Negated(self._signed())
        self._leave()
        return node

    # --- values -------------------------------------------------------------------------------------------------------

    def _primary(self) -> Node:
        token = self.current
        match token.kind:
            case Kind.NUMBER:
                self._advance()
                return Literal(token.number)
            case Kind.TEXT:
                self._advance()
                return Literal(token.text)
            case Kind.NAME:
                return self._named()
            case Kind.SYMBOL:
                return self._enclosed()
            case Kind.END:
                raise self.error("The filter ends where a value is expected.")
        assert_never(token.kind)

    def _enclosed(self) -> Node:
        if self._take_symbol("$"):
            return self._path(Field.VALUE)
        self._enter()
        if self._take_symbol("("):
            node = self.disjunction()
            self._expect(")")
        elif self._take_symbol("["):
            node = self._items()
        else:
            raise self.error(f"A value is expected here, not {_shown(self.current)}.")
        self._leave()
        return node

    def _items(self) -> Items:
        items: list[Node] = []
        while not self._take_symbol("]"):
            if items:
                self._expect(",")
            items.append(self.disjunction())
        return Items(tuple(items))

    def _named(self) -> Node:
        token = self.current
        self._advance()
        name = token.text
        if name in _LITERALS:
            return Literal(_LITERALS[name])
        if name == "now":
            return Now()
        if name in _FUNCTIONS:
            return self._call(_FUNCTIONS[name])
        if name in _FIELDS:
            return self._path(_FIELDS[name])
        if name in _WORDS:
            raise self.error(f"A value is expected here, not `{name}`.", token)
        names = ", ".join(_FIELDS)
        raise self.error(
            f"A record has no field `{name}`; valid names: {names}. Put text to search for in quotes.", token
        )

    def _call(self, function: Function) -> Call:
        self._enter()
        self._expect("(")
        argument = self.disjunction()
        self._expect(")")
        self._leave()
        return Call(function, argument)

    def _path(self, field: Field) -> Path:
        steps: list[str | int | Every] = []
        while True:
            if self._take_symbol("."):
                token = self.current
                if token.kind is not Kind.NAME:
                    raise self.error('A dot must be followed by a name; write other names as ["name"].')
                self._advance()
                steps.append(token.text)
            elif self._take_symbol("["):
                steps.append(self._index())
                self._expect("]")
            else:
                return Path(field, tuple(steps))

    def _index(self) -> str | int | Every:
        if self._take_symbol("*"):
            return Every()
        sign = -1 if self._take_symbol("-") else 1
        token = self.current
        self._advance()
        if token.kind is Kind.NUMBER and isinstance(token.number, int) and token.text.isdecimal():
            return sign * token.number
        if token.kind is Kind.TEXT and sign == 1:
            return token.text
        raise self.error("Brackets must contain an index, a quoted name, or *.", token)

    # --- tokens -------------------------------------------------------------------------------------------------------

    def _advance(self) -> None:
        if self.current.kind is not Kind.END:
            self._position += 1

    def _following(self) -> Token:
        return self._tokens[min(self._position + 1, len(self._tokens) - 1)]

    def _is_word(self, word: str) -> bool:
        """Whether the current token is this word. `&&`, `||` and `!` are symbols that have words as their text."""
        return self.current.text == word and self.current.kind in (Kind.NAME, Kind.SYMBOL)

    def _take_word(self, word: str) -> bool:
        is_next = self._is_word(word)
        if is_next:
            self._advance()
        return is_next

    def _take_symbol(self, symbol: str) -> bool:
        is_next = self.current.kind is Kind.SYMBOL and self.current.text == symbol
        if is_next:
            self._advance()
        return is_next

    def _expect(self, symbol: str) -> None:
        if not self._take_symbol(symbol):
            found = "the filter ends" if self.current.kind is Kind.END else f"{_shown(self.current)} was found"
            raise self.error(f"`{symbol}` is expected here, but {found}.")

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self.error(f"A filter can be nested at most {MAX_DEPTH} levels deep.")

    def _leave(self) -> None:
        self._depth -= 1


def condition_of(text: str) -> Node:
    """The tree of a whole filter. Raises FilterError."""
    return _condition(parse(text))


def _condition(node: Node) -> Node:
    if isinstance(node, Literal) and isinstance(node.value, str):
        return TextSearch(node.value.lower())
    return node


def _shown(token: Token) -> str:
    return f'"{token.text[:40]}"' if token.kind is Kind.TEXT else f"`{token.text[:40]}`"
