"""Figures of natural images draw their recorded variables and metrics."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from scipy import stats

from neuralrace.errors import UserError
from neuralrace.figures import matching_cells
from neuralrace.figures.compose import compose
from neuralrace.figures.domains import transfer_threshold
from neuralrace.figures.neural_race import natural_images, natural_images_controls
from neuralrace.figures.style import rc_context
from neuralrace.results.cells import Results, open_results


@pytest.fixture(scope="module")
def results(results_of) -> Results:
    return results_of("neural_race/")


def drawn(figure: str, results: Results) -> list[Axes]:
    """Panels of a figure by letter, after they are laid out."""
    with rc_context():
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


def test_images_are_transformed_as_for_the_network(results: Results):
    shown, *_ = drawn("natural_images", results)
    images = results.cells("images")[0].image_domains
    arrays = {name: jnp.asarray(values) for name, values in images.arrays().items()}
    (first, *_) = np.flatnonzero(images.images.labels == natural_images.EXAMPLE)
    seen = np.asarray(images.network_inputs(arrays, jnp.asarray(images.images.pixels[[first]])))[
        :, 0
    ]
    chosen = [0, 2, 4, 6, 8]
    assert len(shown.images) == len(chosen)
    for picture, domain in zip(shown.images, chosen, strict=True):
        # up to brightness and contrast
        pixels = np.asarray(picture.get_array()).ravel()
        assert np.corrcoef(pixels, seen[domain])[0, 1] == pytest.approx(1, abs=1e-6)
    assert [tick.get_text() for tick in shown.get_xticklabels()] == [
        f"{27 * domain}°" for domain in chosen
    ]


def test_names_of_classes_are_those_of_the_output_domains(results: Results):
    _, names, *_ = drawn("natural_images", results)
    renamed = results.cells("images")[0].image_domains.class_order[::2]
    texts = [text for text in names.texts if text.get_text()]
    assert [int(text.get_text()) for text in texts] == renamed.ravel().tolist()
    np.testing.assert_array_equal(names.images[0].get_array(), renamed)


def test_errors_are_drawn_at_their_share_and_init_scale(results: Results):
    _, _, _, errors, shares, transfer, by_scale, shares_by_scale = drawn("natural_images", results)
    squared, scaled = results.cells("images"), results.cells("images_init_scale")
    for pairs in ("trained", "untrained"):
        name = f"held_out_{pairs}_error"
        means = [float(cell.trajectory[name].isel(time=-1).mean()) for cell in squared]
        assert has_line(errors, [0.1, 0.2], means)
        finals = [cell.trajectory[name].isel(time=-1) for cell in scaled]
        means = [float(mean) for final in finals for mean in final.mean("seed")]
        assert has_line(by_scale, [0.001, 0.003, 0.01], means)
        for activation in ("linear", "relu"):
            group = [
                cell
                for cell in results.cells("images_cross_entropy")
                if cell.routing.activation == activation
            ]
            assert has_line(shares, [0.2, 0.3], ends(group, f"final_{pairs}_misclassified"))
    assert has_line(transfer, [0.1, 0.2], ends(squared, "zero_shot_ratio"))
    assert len(shares_by_scale.get_lines()) > 4
    ridge = squared[0].metrics
    assert level(errors, float(ridge["ridge_held_out_error"].mean()))
    assert level(by_scale, float(ridge["ridge_held_out_error"].mean()))
    assert level(shares, float(ridge["ridge_misclassified"].mean()))
    assert level(shares, 0.9)


def test_other_image_sets_are_drawn_too(
    results_root: Path, cell_ids: list[str], tmp_path: Path, copy_cell
):
    for cell in matching_cells("neural_race/natural_images", cell_ids):
        _, experiment, label = cell.split("/")
        names = [experiment, "images_cifar_pixels"] if experiment == "images" else [experiment]
        for name in names:
            copy_cell(results_root / cell, tmp_path, f"neural_race/{name}/{label}")
    cells = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*/*"))
    assert matching_cells("neural_race/natural_images", cells) == cells
    transfer = drawn("natural_images", open_results(tmp_path, cells))[5]
    curves = [line for line in transfer.lines if list(line.get_xdata()) == [0.1, 0.2]]
    assert len({tuple(line.get_ydata()) for line in curves}) == 1
    assert len({line.get_color() for line in curves}) == 2


def test_init_scales_need_a_baseline_of_their_images(results: Results):
    cell = results.cells("images_five")[0]
    with pytest.raises(UserError, match="images has another dataset") as error:
        natural_images._same_images(cell, results.cells("images"))
    assert error.value.key == cell.name
    assert "config/" in error.value.remedy
    baseline = results.cells("images")[0]
    chosen = natural_images._same_images(results.cells("images_init_scale")[0], [cell, baseline])
    assert chosen is baseline


def test_ratios_are_drawn_at_their_share_and_number_of_partners(results: Results):
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


def test_threshold_is_where_all_later_medians_are_high():
    medians = {1: 0.95, 2: 0.5, 3: 0.92, 4: 1.0, 5: np.nan}
    shuffled = sorted(medians, reverse=True)
    ratios = [xr.DataArray(medians[x] + np.array([-1, 0, 1]), dims="seed") for x in shuffled]
    assert transfer_threshold(shuffled, ratios) == "3"
    assert transfer_threshold([0.25, 0.5], [ratios[shuffled.index(x)] for x in (1, 2)]) == "none"


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
