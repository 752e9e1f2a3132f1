"""Records → exact leaf counts. Everything in here is secret."""
