"""Administrative commands as processes of their own."""
