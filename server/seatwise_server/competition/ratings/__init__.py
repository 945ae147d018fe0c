"""Tell how strong each bot is: openskill ratings, updated match by match, and strengths fitted to all matches at once."""
