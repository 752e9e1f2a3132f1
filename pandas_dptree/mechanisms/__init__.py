"""The noise: the only place where exact counts meet the outside world."""
