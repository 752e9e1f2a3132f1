"""Claims of speed, measured beside what they are claimed against: ``python -m tests.benchmarks``."""
