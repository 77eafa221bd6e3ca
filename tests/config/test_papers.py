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
    contexts = cell.dataset.contexts
    network = cell.candidates["two"]
    assert network.gates.open_in == (contexts - 1,)
    assert network.gates.shown == "first_group"
    for gated in (network, cell.candidates["one"]):
        assert gated.stages == (1, contexts)
        assert units(gated, cell.dataset) == sum(cell.network.hidden) == 700
    alone = cells["make_haste/contextual_stages/main"]
    assert alone.network == network
    assert set(alone.init_scales) <= set(cell.init_scales)
    for trained in (cell, alone):
        assert (trained.training.learning_rate, trained.training.steps) == (0.001, 8000)
        assert trained.seeds >= 8


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
    assert printed.init_scales == (max(summed.init_scales),)
    assert (printed.network, printed.training.steps) == (summed.network, summed.training.steps)
