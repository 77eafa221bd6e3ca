import pytest

from claims_folder import ClaimsFolder


@pytest.fixture
def work(tmp_path):
    return ClaimsFolder(tmp_path)
