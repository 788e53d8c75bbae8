"""Records as people write and read them: times, types of keys and values, parts of JSON. `kaspar produce` and `kaspar
consume` share these; everything here is pure."""
