"""The previous release beside this one: what it has written is continued, and each speaks with the other."""
