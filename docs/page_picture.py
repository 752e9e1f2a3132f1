"""Draw docs/_static/page.png: the first screen of a page in Chromium. Run it in the folder of the project."""

import subprocess
import tempfile
from pathlib import Path

import numpy as np

import pandas_dptree as dpt

PICTURE = Path(__file__).parent / "_static" / "page.png"

if __name__ == "__main__":
    visits, clinics = dpt.datasets.clinic_visits(60_000), dpt.datasets.clinics()
    counts = visits.dp.tree_counts(
        ["region", "district", "clinic"],
        rho=0.05,
        domain=clinics,
        privacy_unit="person",
        max_contributions=2,
        confidence=0.95,
        rng=np.random.default_rng(0),  # the same picture each time
    )
    del counts.attrs["dp"]["rng"]  # simulated people need no protection
    page = dpt.page({"visits": counts}, title="Visits to clinics, 2025", labels={"count": "Visits"})
    with tempfile.TemporaryDirectory() as folder:
        page.write(Path(folder) / "page.html")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        size = "--window-size=1000,1010"
        profile = f"--user-data-dir={folder}/profile"
        target = [f"--screenshot={PICTURE}", f"file://{folder}/page.html"]
        subprocess.run(["chromium", *options, size, profile, *target], check=True, capture_output=True)
