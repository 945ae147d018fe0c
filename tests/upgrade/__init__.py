"""The newest release beside this version: what it has written is continued, and each speaks with the other."""
