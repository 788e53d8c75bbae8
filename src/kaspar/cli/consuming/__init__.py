"""`kaspar consume`: where it begins and ends, which records it prints, and how."""
