"""The ``.dp`` accessors of frames, series, arrays and datasets."""
