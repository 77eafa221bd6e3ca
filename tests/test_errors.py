"""User-facing errors: what a message shows, and how its key is corrected."""

import pytest

from neuralrace.errors import UserError, configured_as, counted, shorten


def test_a_message_has_file_key_value_problem_and_remedy():
    error = UserError("too large", file="a.yaml", key="x.y", value=(1, 2), remedy="halve it")
    assert str(error) == "a.yaml: x.y: [1, 2]: too large; halve it"


def test_a_message_leaves_out_absent_parts():
    assert str(UserError(key="x", value=None, remedy="leave it out")) == "x: None: leave it out"
    assert str(UserError("the disk is full")) == "the disk is full"


def test_a_long_value_is_shortened():
    assert len(str(UserError("too long", value="x" * 1000))) < 150


def test_a_text_of_the_largest_length_is_whole():
    assert shorten("x" * 20, 20) == "x" * 20
    assert shorten("a" * 10 + "b" * 11, 20) == "a" * 10 + " ... " + "b" * 10


def test_a_counted_noun_is_singular_for_one_only():
    assert [counted(n, "cell") for n in (0, 1, 2)] == ["0 cells", "1 cell", "2 cells"]


def test_replaced_parts_do_not_change_the_first_error():
    error = UserError("too large", key="x", value=1)
    assert str(error.replaced(key="y", value="two")) == "y: 'two': too large"
    assert str(error) == "x: 1: too large"


@pytest.mark.parametrize(
    ("key", "moved"),
    [
        ("network", "candidates.a"),
        ("network.hidden.0", "candidates.a.hidden.0"),
        ("networks.hidden", "networks.hidden"),
        ("init.name", "init.name"),
    ],
)
def test_a_key_of_the_network_is_corrected_where_it_is_configured_under_another(key, moved):
    with pytest.raises(UserError) as error, configured_as("candidates.a"):
        raise UserError("wrong", key=key)
    assert error.value.key == moved
