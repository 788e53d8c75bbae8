"""A small value whose check takes as long as its author likes: each level doubles the work."""

import json

EXPLODING = json.dumps(
    {
        "$id": "http://example.org/a",
        "anyOf": [
            {"type": "array", "items": {"$ref": "http://example.org/a"}},
            {"type": "array", "items": {"$ref": "http://example.org/a"}, "minItems": 0},
            {"type": "integer"},
        ],
    }
)
NESTED = b"[" * 40 + b"]" * 40
