"""How the budget is split over levels and nodes, and the expected errors; both are public."""
