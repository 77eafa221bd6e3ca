"""Configurations of the papers that have to be what the text of a paper says."""

import pytest

from neuralrace.workflow.study import Study


@pytest.fixture(scope="module")
def cells():
    return Study({}).plan.cells


def units(network, dataset):
    """Hidden units of all pathways."""
    widths = network.widths or [1] * network.gates.count(dataset)
    return network.hidden[0] * sum(widths)


def test_gated_networks_are_those_of_appendix_f_of_make_haste_slowly(cells):
    """Context pathways learn what the common one leaves; units in all are the ReLU network's."""
    cell = cells["make_haste/contextual_reln/main"]
    more = [each for name, each in cells.items() if name.startswith("make_haste/contexts_reln/")]
    assert [each.dataset.contexts for each in more] == [3, 4, 5]
    assert all(each.dataset.structures == ("hierarchy",) for each in more)
    relns = [(cell, cell.candidates["two"]), *((each, each.candidates["reln"]) for each in more)]
    for relu, network in relns:
        contexts = relu.dataset.contexts
        assert network.gates.open_in == (contexts - 1,)
        assert network.gates.shown == "first_group"
        assert network.stages == (1, contexts)
        assert units(network, relu.dataset) == sum(relu.network.hidden) == 700
        assert relu.training.learning_rate == 0.001
        assert relu.seeds >= 8
    one = cell.candidates["one"]
    assert (one.stages, units(one, cell.dataset)) == ((1, 3), 700)
    alone = cells["make_haste/contextual_stages/main"]
    assert alone.network == cell.candidates["two"]
    assert (alone.init_scales, alone.seeds) == (cell.init_scales, cell.seeds)
    assert alone.training == cell.training
    assert cell.training.steps == 8000


def test_other_readings_of_make_haste_slowly_differ_in_one_key(cells):
    candidates = cells["make_haste/contextual_reln/main"].candidates
    text = candidates["two"]
    everything = text.gates.model_copy(update={"shown": "everything"})
    for name, changes in {
        "two_jointly": {"stages": None},
        "two_of_table": {"hidden": (100,)},
        "two_shown": {"gates": everything},
    }.items():
        assert candidates[name] == text.model_copy(update=changes), name


def test_loss_of_make_haste_slowly_is_averaged_where_it_is_judged_as_printed(cells):
    printed = cells["make_haste/contextual_averaged/main"]
    summed = cells["make_haste/contextual_reln/main"]
    assert printed.training.loss.normalisation == "half_mean"
    assert min(printed.init_scales) > max(summed.init_scales)  # larger starts are faster
    assert (printed.network, printed.training.steps) == (summed.network, summed.training.steps)
