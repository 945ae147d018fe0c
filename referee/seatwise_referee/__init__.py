"""The authority over one match, as a library: rules, clocks, journal, records. Standard library only."""
