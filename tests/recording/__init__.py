"""What the package computes, recorded: replayed after each step of a rearrangement, and compared."""
