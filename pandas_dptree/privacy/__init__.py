"""How much may leak: privacy loss and sensitivity, both public."""
