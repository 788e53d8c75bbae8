"""What a write changes: from the state and a request to records and a reply. No I/O; only replaying the records changes
the state. A request that is refused raises RegistryError."""
