"""Ledgers: budgets that outlive a process and are never overspent."""
