"""How the budget is spent: shares per level and the errors they lead to, both public."""
