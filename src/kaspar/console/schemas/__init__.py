"""The schemas view: subjects of a schema registry, their versions and changes, over the registry's HTTP API."""
