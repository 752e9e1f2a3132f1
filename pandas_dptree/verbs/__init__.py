"""The public functions for records, and for planning their releases."""
