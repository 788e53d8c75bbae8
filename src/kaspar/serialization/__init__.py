"""Records by schemas of a registry: the bytes in front of them, the registry's client, and values as JSON."""
