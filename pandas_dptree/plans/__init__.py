"""Plans: releases described before they happen."""
