"""Who is present, who waits, and who is seated with whom."""
