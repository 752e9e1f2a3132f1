"""``.dp`` on frames, series, arrays and datasets."""
