"""Reports from one file: what a programme says, checked and planned, and how it is run."""
