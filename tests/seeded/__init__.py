"""A dozen seeded releases, and what they gave when they were recorded."""
