"""`kaspar consume`: where it starts and stops, which records it prints, and how."""
