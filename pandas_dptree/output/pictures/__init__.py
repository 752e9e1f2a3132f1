"""Pictures of released tables, distributions and plans."""
