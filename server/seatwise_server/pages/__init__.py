"""The pages that people look at: HTML that works without scripts, over the same operations as the API."""
