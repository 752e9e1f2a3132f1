"""Privacy loss and sensitivity. Everything in this package is public."""
