"""The shape of the tree and its public labels."""
