"""Figures of natural images draw what their files hold, in the places where it belongs."""

from pathlib import Path

import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from scipy import stats

from neuralrace.errors import UserError
from neuralrace.figures import matching_cells
from neuralrace.figures.compose import compose
from neuralrace.figures.domains import following
from neuralrace.figures.neural_race import natural_images, natural_images_controls
from neuralrace.figures.style import RC_PARAMS
from neuralrace.results.cells import Results, open_results

PREFIX = "neural_race/images"


@pytest.fixture(scope="module")
def results(results_root: Path, cell_ids: list[str]) -> Results:
    return open_results(results_root, [cell for cell in cell_ids if cell.startswith(PREFIX)])


def drawn(figure: str, results: Results) -> list[Axes]:
    """Panels of a figure by letter, after they are laid out."""
    with mpl.rc_context(RC_PARAMS):
        canvas = compose(f"neural_race/{figure}", results)
        canvas.draw_without_rendering()
    return sorted(canvas.axes, key=lambda ax: str(ax.get_label()))


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


def test_images_are_shown_as_the_network_sees_them(results: Results):
    shown, *_ = drawn("natural_images", results)
    images = results.cells("images")[0].image_domains
    arrays = {name: jnp.asarray(values) for name, values in images.arrays().items()}
    (first, *_) = np.flatnonzero(images.images.labels == natural_images.EXAMPLE)
    seen = np.asarray(images.show(arrays, jnp.asarray(images.images.pixels[[first]])))[:, 0]
    chosen = [0, 2, 4, 6, 8]
    assert len(shown.images) == len(chosen)
    for picture, domain in zip(shown.images, chosen, strict=True):
        # up to brightness and contrast
        pixels = np.asarray(picture.get_array()).ravel()
        assert np.corrcoef(pixels, seen[domain])[0, 1] == pytest.approx(1, abs=1e-6)
    assert [tick.get_text() for tick in shown.get_xticklabels()] == [
        f"{27 * domain}°" for domain in chosen
    ]


def test_names_are_those_that_output_domains_give(results: Results):
    _, names, *_ = drawn("natural_images", results)
    renamed = results.cells("images")[0].image_domains.renamed[::2]
    texts = [text for text in names.texts if text.get_text()]
    assert [int(text.get_text()) for text in texts] == renamed.ravel().tolist()
    np.testing.assert_array_equal(names.images[0].get_array(), renamed)


def test_errors_are_at_their_share_and_init_scale(results: Results):
    _, _, _, errors, shares, transfer, by_scale, shares_by_scale = drawn("natural_images", results)
    squared, scaled = results.cells("images"), results.cells("images_init_scale")
    for pairs in ("trained", "untrained"):
        name = f"held_out_{pairs}_error"
        means = [float(cell.trajectory[name].isel(time=-1).mean()) for cell in squared]
        assert has_line(errors, [0.1, 0.2], means)
        found = [cell.trajectory[name].isel(time=-1) for cell in scaled]
        means = [float(mean) for each in found for mean in each.mean("seed")]
        assert has_line(by_scale, [0.001, 0.003, 0.01], means)
        for activation in ("linear", "relu"):
            some = [
                cell
                for cell in results.cells("images_cross_entropy")
                if cell.routing.activation == activation
            ]
            assert has_line(shares, [0.2, 0.3], ends(some, f"final_{pairs}_misclassified"))
    assert has_line(transfer, [0.1, 0.2], ends(squared, "zero_shot_ratio"))
    assert len(shares_by_scale.get_lines()) > 4
    ridge = squared[0].metrics
    assert level(errors, float(ridge["ridge_held_out_error"].mean()))
    assert level(by_scale, float(ridge["ridge_held_out_error"].mean()))
    assert level(shares, float(ridge["ridge_misclassified"].mean()))
    assert level(shares, 0.9)


def test_other_image_sets_stand_beside(
    results_root: Path, cell_ids: list[str], tmp_path: Path, retold
):
    for cell in matching_cells("neural_race/natural_images", cell_ids):
        _, experiment, label = cell.split("/")
        names = [experiment, "images_cifar_pixels"] if experiment == "images" else [experiment]
        for name in names:
            retold(results_root / cell, tmp_path, f"neural_race/{name}/{label}")
    cells = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*/*"))
    assert matching_cells("neural_race/natural_images", cells) == cells
    transfer = drawn("natural_images", open_results(tmp_path, cells))[5]
    curves = [line for line in transfer.lines if list(line.get_xdata()) == [0.1, 0.2]]
    assert len({tuple(line.get_ydata()) for line in curves}) == 1
    assert len({line.get_color() for line in curves}) == 2


def test_init_scales_need_a_baseline_of_their_images(results: Results):
    cell = results.cells("images_five")[0]
    with pytest.raises(UserError, match=r"images_five.*images has another dataset.*config/"):
        natural_images._same_images(cell, results.cells("images"))
    baseline = results.cells("images")[0]
    found = natural_images._same_images(results.cells("images_init_scale")[0], [cell, baseline])
    assert found is baseline


def test_ratios_are_at_their_share_and_number_of_partners(results: Results):
    by_share, by_number, classified = drawn("natural_images_partners", results)
    for name, shares, numbers in (
        ("images", [0.1, 0.2], [1, 2]),
        ("images_five", [0.2, 0.4], [1, 2]),
        ("images_random", [0.1, 0.2], [1, 2]),
        ("images_small_init", [0.1, 0.2], [1, 2]),
        ("images_twenty", [0.1, 0.2], [2, 4]),
    ):
        cells = results.cells(name)
        assert has_line(by_share, shares, ends(cells, "zero_shot_ratio"))
        assert has_line(by_number, numbers, ends(cells, "zero_shot_ratio"))
        assert has_line(classified, numbers, ends(cells, "transfer"))


def test_pairs_follow_from_where_all_medians_are_high():
    medians = {1: 0.95, 2: 0.5, 3: 0.92, 4: 1.0, 5: np.nan}
    shuffled = sorted(medians, reverse=True)
    ratios = [xr.DataArray(medians[x] + np.array([-1, 0, 1]), dims="seed") for x in shuffled]
    assert following(shuffled, ratios) == "3"
    assert following([0.25, 0.5], [ratios[shuffled.index(x)] for x in (1, 2)]) == "none"


def test_controls_show_every_seed_and_the_interval_of_their_mean(results: Results):
    controls, curves = drawn("natural_images_controls", results)
    rows = [tick.get_text() for tick in controls.get_yticklabels()]
    assert len(rows) == len(results.cells("images_controls"))
    for cell in results.cells("images_controls"):
        dataset = cell.spec.dataset
        name = "\n".join(
            (
                natural_images_controls.INPUTS[dataset.inputs],
                natural_images_controls.OUTPUTS[dataset.outputs],
            )
        )
        row = rows.index(name)
        for pairs in ("trained", "untrained"):
            error = cell.metrics[f"final_{pairs}_error"].values[0]
            assert any(np.array_equal(line.get_xdata(), error) for line in controls.lines)
            interval = stats.t.interval(0.95, len(error) - 1, error.mean(), stats.sem(error))
            assert has_line(controls, interval, [row, row])
        floor = float(cell.metrics["least_squares_training_error"].mean())
        assert has_line(controls, [floor, floor], [row - 0.45, row + 0.45])
    for cell in results.cells("images"):
        error = cell.trajectory["untrained_error"].isel(init_scale=0).mean("seed")
        assert has_line(curves, cell.flow_time, error)
