"""The live panels, one per file, and the column that they stand in."""
