"""From noisy values to consistent ones: post-processing, free of privacy cost."""
