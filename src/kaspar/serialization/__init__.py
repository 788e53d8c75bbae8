"""Encodes and decodes records with the schemas of a registry: the prefix of their bytes, the registry's client, and
values as JSON.

- `wire_format`: which schema a record was written with
- `registry_config`, `registry_client`: the registry over HTTP with caches; `registry_http` and `mock_registry` are the
  two ways to send requests
- `subject_names`: the subject under which a schema is registered
- `values`: values of a schema as JSON, to bytes and back; one module for each format
- `records`: all of these together, for keys and values of a topic
- `core`: decodes Avro into Arrow's buffers, compiled

All of this is blocking, does not depend on an event loop, and is created from a configuration that can be pickled:
Spark's tasks use it in the same way as the commands.
"""
