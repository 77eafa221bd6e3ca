"""Distribution of tests by pytest-xdist: tests that share a slow fixture run in one process."""

from types import SimpleNamespace

import pytest

from builders import REPOSITORY


@pytest.fixture
def distribution(pytestconfig):
    return pytestconfig.pluginmanager.get_plugin(str(REPOSITORY / "tests" / "conftest.py"))


def test_tests_that_share_are_one_scope_and_other_tests_are_their_own(distribution):
    scope = distribution.Together.__new__(distribution.Together)._split_scope
    for place in distribution.SHARING:
        file = place.endswith(".py")
        assert (REPOSITORY / place).is_file() if file else list((REPOSITORY / place).glob("test_*"))
        one, other = (place, place) if file else (f"{place}/test_a.py", f"{place}/test_c.py")
        assert scope(f"{one}::test_b") == scope(f"{other}::test_d[x/y::z]")
    assert "tests/test_messages.py" in distribution.MODULES
    assert "tests/test_odd_inputs.py" not in distribution.MODULES
    for file in distribution.MODULES:
        assert scope(f"{file}::test_b") == scope(f"{file}::test_d[x/y::z]")
    tests = ("tests/workflow/test_a.py::test_b", "tests/test_a.py::test_b[x/y::z]")
    assert [scope(test) for test in tests] == list(tests)


def test_long_tests_come_first(distribution):
    tests = [f"{folder}/test_a.py::test_b" for folder in ("tests/api", *distribution.LONG)]
    items = [SimpleNamespace(nodeid=test) for test in [*tests, "tests/test_z.py::test_b"]]
    distribution.pytest_collection_modifyitems(items)
    assert [item.nodeid for item in items] == [*tests[1:], tests[0], "tests/test_z.py::test_b"]
    assert all((REPOSITORY / place).exists() for place in distribution.LONG)


def test_pytest_runs_without_xdist(distribution):
    hook = distribution.pytest_xdist_make_scheduler
    assert hook.pytest_impl["optionalhook"]
