"""Tests that share what takes minutes to make are handed to one process."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture
def scheduling(pytestconfig):
    return pytestconfig.pluginmanager.get_plugin(str(HERE / "conftest.py"))


def test_a_shared_folder_is_one_scope_and_other_tests_are_their_own(scheduling):
    scope = scheduling.FoldersTogether.__new__(scheduling.FoldersTogether)._split_scope
    for folder in scheduling.SHARING:
        assert list((HERE.parent / folder).glob("test_*.py")), folder
        assert scope(f"{folder}/test_a.py::test_b") == scope(f"{folder}/test_c.py::test_d[x/y::z]")
    tests = ("tests/workflow/test_a.py::test_b", "tests/test_a.py::test_b[x/y::z]")
    assert [scope(test) for test in tests] == list(tests)


def test_pytest_is_told(scheduling, pytestconfig):
    hook = scheduling.pytest_xdist_make_scheduler
    assert hook.pytest_impl["optionalhook"], "pytest runs without pytest-xdist"
