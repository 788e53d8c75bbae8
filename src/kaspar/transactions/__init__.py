"""The transaction coordinator: the state of every transactional id, and how its transactions end."""
