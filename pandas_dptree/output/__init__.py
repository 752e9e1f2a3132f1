"""Released tables, datasets, plots and reports, made from estimates."""
