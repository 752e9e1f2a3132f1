"""Numbers derived from released tables: proportions, changes, sums of rows, the largest, reliability."""
