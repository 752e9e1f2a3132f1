"""Released tables of distinct people, alone and beside counts of their visits."""

import pandas_dptree as dpt

BY = ["region", "district"]
PLACES = dpt.datasets.clinics()[BY].drop_duplicates()
VISITS = dpt.datasets.clinic_visits(3_000)
COLUMNS = {"visits": "count", "visitors": "units", "visits_each": "count_per_unit"}


def people(**options):
    """Count the people of each district and above."""
    return VISITS.dp.tree_units(
        BY, **{"domain": PLACES, "epsilon": 1.0, "privacy_unit": "person", "max_nodes": 3, **options}
    )


def visitors(columns=COLUMNS, **options):
    """Count the visits and the people together."""
    unit = {"privacy_unit": "person", "max_nodes": 3, "max_contributions": 4}
    return VISITS.dp.tree_agg(BY, columns, **{"domain": PLACES, "rho": 0.1, **unit, **options})
