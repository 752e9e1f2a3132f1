"""Records and public tables in files: CSV, Parquet, and databases of duckdb."""
