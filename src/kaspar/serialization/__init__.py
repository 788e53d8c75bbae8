"""Records by schemas of a registry: the bytes in front of them, the registry's client, and values as JSON.

- `wire_format`: which schema a record was written with
- `registry_config`, `registry_client`: the registry over HTTP with caches; `registry_http` and `mock_registry` are the
  two ways its requests go
- `subject_names`: under which subject a schema is registered
- `values`: values of a schema as JSON, to bytes and back; one module for each format
- `records`: all of it together, for keys and values of a topic
- `core`: Avro's bytes into Arrow's buffers, compiled

Everything blocks, knows no event loop, and is made of a configuration that can be pickled: Spark's tasks use it as the
commands do.
"""
