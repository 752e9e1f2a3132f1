"""Pages of released tables for readers who know no statistics: HTML without scripts or network."""
