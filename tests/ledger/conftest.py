import pytest

from tests.helpers_ledger import create


@pytest.fixture
def ledger(tmp_path):
    """A ledger with the account "patients": rho 1, delta 1e-6."""
    with create(tmp_path, rho=1.0, delta=1e-6) as made:
        yield made


@pytest.fixture
def patients(ledger):
    return ledger["patients"]
