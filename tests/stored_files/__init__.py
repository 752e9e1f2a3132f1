"""A ledger, plans, tables and pages as an earlier version wrote them, which later ones must keep reading."""
