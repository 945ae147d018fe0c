"""A league, from its file to its table: reads the file, plays the matches, and publishes the results."""
