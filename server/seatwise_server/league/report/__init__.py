"""The page of a season: tables and plots in one file, which needs neither other files nor scripts."""
