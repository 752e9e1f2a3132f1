"""What is measured: the shape of the tree and its public labels."""
