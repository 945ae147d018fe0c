"""Games from outside packages: their kit and codec, and how they are found and described."""
