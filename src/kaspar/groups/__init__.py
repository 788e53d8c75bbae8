"""The group coordinator: who belongs to a group, what each member reads, and how far it has come."""
