"""Records in a form for people: times, types of keys and values, parts of JSON values. Shared by `kaspar produce` and
`kaspar consume`. Everything here is pure."""
