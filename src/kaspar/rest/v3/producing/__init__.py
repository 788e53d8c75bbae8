"""Records of version 3: one connection, many records, a response to each."""
