"""One process that hosts the HTTP services: the registry and the REST proxy."""
