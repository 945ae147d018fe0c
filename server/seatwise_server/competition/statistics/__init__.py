"""Tell how sure a season is and whether it was fair: estimates with intervals, luck of the deal, and tests."""
