"""Figures of natural images draw their recorded variables and metrics."""

import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from scipy import stats

from neuralrace.errors import UserError
from neuralrace.figures.compose import compose
from neuralrace.figures.domains import TRAINED, mask, nearest_first, partner_share
from neuralrace.figures.neural_race import (
    natural_images,
    natural_images_controls,
    natural_images_init_scale,
    natural_images_partners,
)
from neuralrace.figures.style import rc_context
from neuralrace.results.cells import CellResults, Results


@pytest.fixture(scope="module")
def results(results_of) -> Results:
    return results_of("neural_race/")


def drawn(figure: str, results: Results) -> list[Axes]:
    """Panels of a figure by letter, after they are laid out."""
    with rc_context():
        canvas = compose(f"neural_race/{figure}", results)
        canvas.draw_without_rendering()
    return sorted(canvas.axes, key=lambda ax: str(ax.get_label()))


def panel(figure: str, results: Results, letter: str) -> Axes:
    (ax,) = (ax for ax in drawn(figure, results) if ax.get_label() == letter)
    return ax


def parts(figure: str, results: Results) -> list[Axes]:
    """Axes into which panels are divided, in order."""
    return [ax for ax in drawn(figure, results) if not ax.get_label()]


def has_line(ax: Axes, x, y) -> bool:
    return any(
        np.shape(line.get_xdata()) == np.shape(x)
        and np.allclose(line.get_xdata(), x)
        and np.allclose(line.get_ydata(), y)
        for line in ax.lines
    )


def level(ax: Axes, height: float) -> bool:
    return any(np.allclose(line.get_ydata(), height) for line in ax.lines)


def ends(cells, name: str) -> list[float]:
    return [float(cell.metrics[name].isel(init_scale=0).mean()) for cell in cells]


def test_images_are_transformed_as_for_the_network(results: Results):
    shown = panel("natural_images", results, "a")
    images = results.cells("images")[0].image_domains
    arrays = {name: jnp.asarray(values) for name, values in images.arrays().items()}
    (first, *_) = np.flatnonzero(images.images.labels == natural_images.EXAMPLE)
    seen = np.asarray(images.network_inputs(arrays, jnp.asarray(images.images.pixels[[first]])))[
        :, 0
    ]
    chosen = [0, 2, 4]
    assert len(shown.images) == len(chosen)
    for picture, domain in zip(shown.images, chosen, strict=True):
        # up to brightness and contrast
        pixels = np.asarray(picture.get_array()).ravel()
        assert np.corrcoef(pixels, seen[domain])[0, 1] == pytest.approx(1, abs=1e-6)
    texts = [text.get_text() for text in shown.texts]
    assert [text for text in texts if "°" in text] == [f"{27 * domain}°" for domain in chosen]


def test_labels_are_those_of_the_output_domains(results: Results):
    shown = panel("natural_images", results, "a")
    units = results.cells("images")[0].image_domains.class_order[:5:2, natural_images.EXAMPLE]
    names = [text.get_text() for text in shown.texts if text.get_text().startswith("unit ")]
    assert names == [f"unit {unit + 1}" for unit in units]
    dark = [to_rgb(patch.get_facecolor())[0] < 0.5 for patch in shown.patches]
    np.testing.assert_array_equal(np.reshape(dark, (3, 10)).argmax(axis=1), units)


def test_lines_join_trained_pairs(results: Results):
    shown = panel("natural_images", results, "a")
    cell = nearest_first(results.cells("images"))[0]
    trained = [line.get_color() == TRAINED["color"] for line in shown.lines]
    np.testing.assert_array_equal(np.reshape(trained, (3, 3)), mask(cell)[:5:2, :5:2])


def test_errors_are_drawn_at_their_share(results: Results):
    errors, *more, shares, _, _ = parts("natural_images", results)
    squared = results.cells("images")
    assert [ax.get_title() for ax in (errors, *more)] == [
        f"digits, $M$ = {count}" for count in (10, 40, 100)
    ]
    for pairs in ("trained", "untrained"):
        name = f"held_out_{pairs}_error"
        means = [float(cell.trajectory[name].isel(time=-1).mean()) for cell in squared]
        assert has_line(errors, [0.1, 0.2], means)
        assert has_line(shares, [0.1, 0.2], ends(squared, f"final_{pairs}_misclassified"))
    ridge = squared[0].metrics
    assert level(errors, float(ridge["ridge_held_out_error"].mean()))
    assert level(shares, float(ridge["ridge_misclassified"].mean()))
    assert level(shares, 0.9)


def test_misclassified_images_are_drawn_at_their_init_scale_and_share(results: Results):
    shown = parts("natural_images_init_scale", results)
    by_scale, by_share = shown[:3], shown[3:]
    ridge = float(results.cells("images")[0].metrics["ridge_misclassified"].mean())
    for number, (_, scaled, shared, activation) in enumerate(natural_images_init_scale.LEARNING):
        cells = [c for c in results.cells(shared) if c.routing.activation == activation]
        shares = [partner_share(cell) for cell in cells]
        for pairs in ("trained", "untrained"):
            name = f"final_{pairs}_misclassified"
            finals = [cell.metrics[name] for cell in results.cells(scaled)]
            scales = [float(scale) for final in finals for scale in final["init_scale"]]
            means = [float(mean) for final in finals for mean in final.mean("seed")]
            assert has_line(by_scale[number], scales, means)
            assert has_line(by_share[number], shares, ends(cells, name))
        assert level(by_scale[number], ridge)
        assert level(by_share[number], ridge)


def under_other_names(cells, images: str) -> list[CellResults]:
    """The cells as those of three kinds of features of an image set."""
    named = [
        (f"neural_race/images_cifar_{features}/{cell.name.split('/')[-1]}", cell)
        for features in ("pixels", "components", "convolutions")
        for cell in cells
    ]
    copies = [
        CellResults(name, cell.folder, cell.spec, cell.trajectory, metrics=cell.metrics)
        for name, cell in named
    ]
    for cell in copies:
        dataset = cell.spec.dataset
        shown = dataset.images.model_copy(update={"name": images})
        update = {"dataset": dataset.model_copy(update={"images": shown})}
        vars(cell)["spec"] = cell.spec.model_copy(update=update)
    return copies


def test_photographs_are_drawn_in_place_of_digits(results: Results):
    digits = results.cells("images")
    photographs = under_other_names(digits, "cifar10")
    both = Results([*digits, *photographs])
    assert natural_images.image_sets(both) == [photographs[:2], photographs[2:4], photographs[4:]]
    assert natural_images.image_sets(Results(digits)) == [digits]
    shown = parts("natural_images", both)
    assert len(shown) == 6
    assert [ax.get_title() for ax in shown[:3]] == ["CIFAR-10 (Fig. 7b)\npixels, $M$ = 10"] * 3
    errors = [float(cell.trajectory["held_out_trained_error"][..., -1].mean()) for cell in digits]
    assert all(has_line(ax, [0.1, 0.2], errors) for ax in shown[:3])


def test_init_scales_need_a_baseline_of_their_images(results: Results):
    cell = results.cells("images_five")[0]
    with pytest.raises(UserError, match="images has another dataset") as error:
        natural_images_init_scale._same_images(cell, results.cells("images"))
    assert error.value.key == cell.name
    assert "config/" in error.value.remedy
    baseline = results.cells("images")[0]
    chosen = natural_images_init_scale._same_images(
        results.cells("images_init_scale")[0], [cell, baseline]
    )
    assert chosen is baseline


def test_ratios_are_drawn_at_their_share_of_partners(results: Results):
    axes = drawn("natural_images_partners", results)
    (by_share,) = (ax for ax in axes if ax.get_label() == "a")
    shift = natural_images_partners.SHIFT
    places = {"images_five": ((0.2, 0.4), -2), "images": ((0.1, 0.2), -1)}
    for name, (shares, away) in (places | {"images_of_100": ((0.2, 0.3), 2)}).items():
        x = [share + away * shift for share in shares]
        values = [cell.metrics["zero_shot_ratio"][0] for cell in results.cells(name)]
        medians = [float(runs.median()) for runs in values]
        assert has_line(by_share, x, medians)
        for at, runs in zip(x, values, strict=True):
            assert has_line(by_share, [at] * runs.size, runs)
    rows = [tick.get_text() for ax in axes for tick in ax.get_yticklabels()]
    assert "20 domains, band" in rows


@pytest.mark.parametrize(
    ("values", "number"),
    [([0, 0.8, 1.0, 0.2], 2.5), ([0.95, 1], 1), ([0, 0.45, 0.9], 3), ([0.1, 0.2], np.inf)],
)
def test_partners_needed_are_where_transfer_first_reaches_a_level(values, number: float):
    x = [float(number) for number in range(1, len(values) + 1)]
    reached = natural_images_partners._reached(x, np.array(values, dtype=float), 0.9)
    assert reached == pytest.approx(number)


def test_controls_show_every_seed_and_the_interval_of_their_mean(results: Results):
    axes = drawn("natural_images_controls", results)
    (controls,) = (ax for ax in axes if not ax.get_label())
    (curves,) = (ax for ax in axes if ax.get_label() == "b")
    cells = sorted(results.cells("images_controls"), key=natural_images_controls._transformations)
    rows = [tick.get_text() for tick in controls.get_yticklabels()]
    outputs = [cell.spec.dataset.outputs for cell in cells]
    assert rows == [natural_images_controls.OUTPUTS[name] for name in outputs]
    for row, cell in enumerate(cells):
        for pairs in ("trained", "untrained"):
            error = cell.metrics[f"final_{pairs}_error"].values[0]
            assert any(np.array_equal(line.get_xdata(), error) for line in controls.lines)
            interval = stats.t.interval(0.95, len(error) - 1, error.mean(), stats.sem(error))
            assert has_line(controls, interval, [row, row])
        floor = float(cell.metrics["least_squares_training_error"].mean())
        assert has_line(controls, [floor, floor], [row - 0.45, row + 0.45])
    for cell in results.cells("images"):
        more = cell.trajectory["untrained_error"] - cell.trajectory["trained_error"]
        above = more.isel(init_scale=0).clip(natural_images_controls.LEAST)
        assert has_line(curves, cell.flow_time, above.median("seed"))
        for seed in above["seed"]:
            assert has_line(curves, cell.flow_time, above.sel(seed=seed))
