"""kafka-acls: lists, adds and removes ACLs."""
