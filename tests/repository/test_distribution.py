"""Distribution of tests by pytest-xdist: tests that share a slow fixture run in one process."""

import pytest

from builders import REPOSITORY


@pytest.fixture
def distribution(pytestconfig):
    return pytestconfig.pluginmanager.get_plugin(str(REPOSITORY / "tests" / "conftest.py"))


def test_a_shared_folder_is_one_scope_and_other_tests_are_their_own(distribution):
    scope = distribution.FoldersTogether.__new__(distribution.FoldersTogether)._split_scope
    for folder in distribution.SHARING:
        assert list((REPOSITORY / folder).glob("test_*.py")), folder
        assert scope(f"{folder}/test_a.py::test_b") == scope(f"{folder}/test_c.py::test_d[x/y::z]")
    tests = ("tests/workflow/test_a.py::test_b", "tests/test_a.py::test_b[x/y::z]")
    assert [scope(test) for test in tests] == list(tests)


def test_pytest_runs_without_xdist(distribution):
    hook = distribution.pytest_xdist_make_scheduler
    assert hook.pytest_impl["optionalhook"]
