"""Records to exact leaf counts. Everything in this package is secret."""
