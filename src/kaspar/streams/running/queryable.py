"""The contents of stores over HTTP, for dashboards and other programs.

    GET /stores                                    all stores, with their kinds
    GET /stores/NAME                               one store, with its number of entries
    GET /stores/NAME/keys/KEY                      the value of a key
    GET /stores/NAME/range?from=A&to=B&limit=100   keys and values between two keys, both inclusive
    GET /stores/NAME/range?after=A&to=B&limit=100  those after a key, such as the last one of an earlier response
    GET /stores/NAME/windows/KEY?from=MS&to=MS     the windows or sessions of a key
    GET /stores/NAME/windows?from=MS&to=MS&limit=100     those of all keys, or of keys from first_key= to last_key=

A key in the path is plain text for text keys, and JSON for others. Alternatively `?key_base64=` contains its bytes, and
the path ends with /keys or /windows. Values are JSON if possible, and otherwise base64.
"""

import base64
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kaspar.base.errors import KasparError
from kaspar.streams.errors import StreamsError
from kaspar.streams.running.local_stores import LocalStore
from kaspar.streams.stores.typed import ValueAndTimestamp
from kaspar.streams.windows import Windowed

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

Stores = Callable[[], Mapping[str, LocalStore]]

_DEFAULT_LIMIT: Final = 100
_LARGEST_LIMIT: Final = 10_000


class BadRequest(KasparError):
    """An invalid request, with the reason."""


def make_app(stores: Stores) -> "Starlette":
    """`stores` returns the stores of the program by name."""
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    def endpoint(find: "Callable[[LocalStore, Request], Any]") -> "Callable[[Request], Response]":
        def respond(request: "Request") -> "Response":
            store = stores().get(request.path_params["name"])
            if store is None:
                return _json({"error": f"Unknown store {request.path_params['name']}: GET /stores lists them."}, 404)
            try:
                found = find(store, request)
            except BadRequest as problem:
                return _json({"error": str(problem)}, 400)
            except StreamsError as problem:
                return _json({"error": str(problem)}, 409)
            return _json({"error": "The store has no such key."}, 404) if found is None else _json(found)

        return respond

    def list_stores(request: "Request") -> "Response":
        return _json([{"name": each.name, "kind": each.kind} for each in stores().values()])

    def _json(value: Any, status: int = 200) -> "Response":
        return Response(msgspec.json.encode(value, enc_hook=_other), status, media_type="application/json")

    # The endpoints are not asynchronous, so that Starlette runs them in threads: they read files.
    return Starlette(
        routes=[
            Route("/stores", list_stores),
            Route("/stores/{name}", endpoint(_describe)),
            Route("/stores/{name}/keys", endpoint(_get)),
            Route("/stores/{name}/keys/{key:path}", endpoint(_get)),
            Route("/stores/{name}/range", endpoint(_range)),
            Route("/stores/{name}/windows", endpoint(_windows)),
            Route("/stores/{name}/windows/{key:path}", endpoint(_windows)),
        ]
    )


def _describe(store: LocalStore, request: "Request") -> Any:
    return {
        "name": store.name,
        "kind": store.kind,
        "partitions": store.partitions,
        "entries": store.approximate_num_entries(),
    }


def _get(store: LocalStore, request: "Request") -> Any:
    _refuse_windows(store)
    key = _key(store, request)
    found = store.get(key)
    return None if found is None else {"key": _shown(key), **_value(found)}


def _range(store: LocalStore, request: "Request") -> Any:
    _refuse_windows(store)
    first, last, after = _bounds(store, request, "from", "to", "after")
    if first is not None and after is not None:
        raise BadRequest("from and after cannot be used together.")
    found = store.range(first if after is None else after, last)
    if after is not None:
        found = itertools.dropwhile(lambda row: row[0] == after, found)
    rows = itertools.islice(found, _limit(request))
    return [{"key": _shown(key), **_value(value)} for key, value in rows]


def _bounds(store: LocalStore, request: "Request", *names: str) -> list[Any]:
    """The keys in these parameters; None for a missing parameter."""
    given = request.query_params
    return [None if name not in given else _parsed(store, given[name]) for name in names]


def _limit(request: "Request") -> int:
    limit = _number(request, "limit", _DEFAULT_LIMIT)
    if limit > _LARGEST_LIMIT:
        raise BadRequest(f"limit must be at most {_LARGEST_LIMIT}, not {limit}.")
    return limit


def _windows(store: LocalStore, request: "Request") -> Any:
    if not store.has_windows:
        raise StreamsError(f"The store {store.name} has no windows: GET /stores/{store.name}/keys/KEY.")
    bounds = {}
    for name, parameter in (("from", "time_from"), ("to", "time_to")):
        if name in request.query_params:
            bounds[parameter] = _number(request, name, 0)
    if "key" in request.path_params or "key_base64" in request.query_params:
        found: Iterable[tuple[Windowed[Any], Any]] = store.fetch(_key(store, request), **bounds)
    else:
        keys = _bounds(store, request, "first_key", "last_key")
        found = itertools.islice(store.fetch_range(*keys, **bounds), _limit(request))
    return [_window(windowed) | _value(value) for windowed, value in found]


def _refuse_windows(store: LocalStore) -> None:
    if store.has_windows:
        raise StreamsError(f"The store {store.name} has windows: GET /stores/{store.name}/windows/KEY.")


# --- keys and values --------------------------------------------------------------------------------------------------


def _key(store: LocalStore, request: "Request") -> Any:
    given = request.query_params.get("key_base64")
    if given is None:
        if "key" not in request.path_params:
            raise BadRequest("The key is missing: it is the last part of the path, or key_base64=.")
        return _parsed(store, request.path_params["key"])
    try:
        data = base64.b64decode(given, validate=True)
    except ValueError:
        raise BadRequest("key_base64 is not base64.") from None
    return _read(store, data)


def _parsed(store: LocalStore, text: str) -> Any:
    """Parse a key: the text itself if the serde accepts it, or else the JSON value or the bytes of the text."""
    if _is_key(store, text):
        return text
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        value = text.encode()
    if _is_key(store, value):
        return value
    raise BadRequest(f"{text!r} is not a key of the store {store.name}: give its bytes with key_base64=.")


def _is_key(store: LocalStore, value: Any) -> bool:
    """Whether the serde accepts the value and returns it unchanged."""
    try:
        data = store.key_serde.serialize(store.name, value)
        return data is not None and store.key_serde.deserialize(store.name, data) == value
    except Exception:
        return False


def _read(store: LocalStore, data: bytes) -> Any:
    try:
        return store.key_serde.deserialize(store.name, data)
    except Exception as problem:
        raise BadRequest(f"key_base64 is not a key of the store {store.name}: {problem}") from None


def _value(stored: Any) -> dict[str, Any]:
    if isinstance(stored, ValueAndTimestamp):
        return {"value": _shown(stored.value), "timestamp": stored.timestamp}
    return {"value": _shown(stored)}


def _window(windowed: Windowed[Any]) -> dict[str, Any]:
    return {"key": _shown(windowed.key), "start": windowed.window.start, "end": windowed.window.end}


def _shown(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    return value


def _other(value: Any) -> Any:
    """Convert a value that JSON cannot represent."""
    return str(value)


def _number(request: "Request", name: str, default: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not text.isdecimal():
        raise BadRequest(f"{name} must be an integer, not {text!r}.")
    return int(text)
