"""The time axis of `neuralrace.plot`, and the fonts of figures that users save."""

import io
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

import neuralrace as nr
from neuralrace.figures.style import Canvas

X, Y = np.eye(4), np.diag([4.0, 3, 2, 1])
OPTIONS: dict[str, Any] = {
    "hidden": [8],
    "init_scales": [0.1],
    "seeds": 1,
    "records": 10,
    "progress": False,
}
RATE: dict[str, Any] = {"learning_rate": 0.1, "steps": 20}


@pytest.fixture(scope="module")
def tree():
    return nr.simulate(X, Y, theory=["flow"], **OPTIONS, **RATE)


def ends(figure):
    """Label of the time axis, and the last time of simulation and theory in the first panel."""
    ax = figure.axes[0]
    return ax.get_xlabel(), *(float(line.get_xdata()[-1]) for line in ax.lines)


def test_time_axis_can_be_chosen(tree):
    flow_time = float(tree["trajectory"].to_dataset()["flow_time"][-1])
    assert ends(nr.plot(tree)) == ends(nr.plot(tree, time="epochs")) == ("epochs", 20, 20)
    assert ends(nr.plot(tree, time="steps")) == ("steps", 20, 20)
    label, *times = ends(nr.plot(tree, time="flow"))
    assert label == r"time ($\tau$)"
    assert times == pytest.approx([flow_time] * 2)
    assert tree["trajectory"]["time"].values[-1] == 20


def test_axes_of_ones_own_have_the_chosen_time(tree):
    ax = Figure().subplots()
    assert ends(nr.plot(tree, ax, time="flow"))[0] == r"time ($\tau$)"


def test_an_epoch_of_mini_batches_has_several_steps():
    batch = {"name": "mini", "size": 2}
    tree = nr.simulate(X, Y, batch=batch, theory=None, **OPTIONS, **RATE)
    assert ends(nr.plot(tree)) == ("steps", 20)
    assert ends(nr.plot(tree, time="epochs")) == ("epochs", 10)


def test_switches_of_tasks_follow_the_time_axis():
    modes = {"name": "modes", "singular_values": [3, 1], "inputs": 4, "outputs": 3}
    negated = {"name": "changed_targets", "of": modes, "change": "negated"}
    tasks = {"name": "sequence", "tasks": [modes, negated], "switches": [10]}
    tree = nr.simulate(tasks, theory=None, observables=["task_loss"], **OPTIONS, **RATE)
    lines = nr.plot(tree, time="flow").axes[1].lines
    (switch,) = {np.asarray(line.get_xdata())[0] for line in lines if line.get_color() == "0.6"}
    assert switch == pytest.approx(float(tree["trajectory"].to_dataset()["flow_time"][-1]) / 2)


def test_caption_counts_in_the_chosen_time():
    tree = nr.simulate(X, Y, theory=None, learning_rate=0.1, steps=4000, **OPTIONS)
    figure = nr.plot(tree, time="flow")
    end = figure.axes[0].get_xlim()[1]
    assert f"Shown until {end:,.3g} of " in figure.get_supxlabel()
    assert r" $\tau$: later" in figure.get_supxlabel()


FRESH = {"batch": {"name": "fresh", "size": 2}}
REFUSED: dict[Any, tuple[dict[str, Any], str]] = {
    "hours": ({}, "time: 'hours': unknown; there is steps, epochs, flow"),
    "epochs": (
        {"batch": {"name": "fresh", "size": 2}},
        "time: 'epochs': every step draws fresh samples.*; use steps",
    ),
    "flow": ({"optimiser": "adam"}, "time: 'flow': adam does not follow gradient flow; use steps"),
}


@pytest.mark.parametrize("time", REFUSED)
def test_a_time_that_training_does_not_have_is_refused(time):
    options, message = REFUSED[time]
    data = "nonlinear_gaussian" if "batch" in options else X
    targets = None if "batch" in options else Y
    tree = nr.simulate(data, targets, theory=None, **OPTIONS, **RATE, **options)
    with pytest.raises(nr.UserError, match=message):
        nr.plot(tree, time=time)


def test_figures_are_saved_with_truetype_fonts(tree):
    small, before = Canvas(figsize=(1, 1)), dict(mpl.rcParams)
    small.text(0.5, 0.5, "a")
    cases = (
        (nr.plot(tree), "pdf", b"/FontFile2", b"/Type3"),
        (small, "ps", b"/FontType 42", b"/FontType 3"),
    )
    for figure, kind, truetype, other in cases:
        with io.BytesIO() as content, mpl.rc_context({"pdf.fonttype": 3, "ps.fonttype": 3}):
            figure.savefig(content, format=kind)
            saved = content.getvalue()
        assert truetype in saved
        assert other not in saved
    assert dict(mpl.rcParams) == before
