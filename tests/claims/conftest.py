import pytest
from workplace import Workplace


@pytest.fixture
def work(tmp_path):
    return Workplace(tmp_path)
