"""Gates that change during training as shifts of each other, solved in one Fourier basis."""

import numpy as np

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.receptive_fields.receptive_fields import weights_on_ring
from neuralrace.metrics.values import Values, per_run, relative_distance
from neuralrace.results.cells import CellResults
from neuralrace.theory.refreshed_gates import relinearised_descent
from neuralrace.theory.ring import Weights, shared_normals, shifted_descent

SAMPLES = 200
"""Number of samples that are moved to the places of all units."""
REFRESHES = (1, 5, 10)
"""Numbers of refreshes of the solution; the simulation has the last one, of which they are
divisors."""


@Metric(
    requires="layered relu one_hidden mean_readout squared_error full_batch gradient_descent "
    "one_output units_divide_inputs",
    observables="weights",
    variables={
        "shared_gates_error": ("refreshes", "distance of weights by frequency from simulation"),
        "shifted_relu_error": ("", "the same for a ReLU network of shifted units"),
        "relu_error": ("", "the same for the ReLU network from the weights of the cell"),
        "shared_gates_uneven": ("", "growth of differences between units with shared gates"),
        "relu_uneven": ("", "growth of differences between units of the ReLU network"),
    },
)
def shared_gates(cell: CellResults) -> Values:
    """Distance of the solution by frequency from simulation, with gates that change as shifts.

    The gate of a unit is the half-space of the mean receptive field over units, moved to the unit.
    It is refreshed ten times in the time of training. The simulation descends on samples at the
    places of all units, from the initial weights of the cell. The solution has the same basis at
    all times. Distances are relative Frobenius norms at the end: 0 for perfect agreement.

    If receptive fields start as shifts of their mean, these are the gates of a ReLU network. The
    solution, refreshed at every step, is compared with its descent; also from unrelated fields.

    Differences between units are what is left of receptive fields without their mean, for sites
    relative to the unit; their growth is the norm at the end over that at the start.

    Source: first idea of section 5 of the notes on localisation; derived here.
    """
    training, data = cell.spec.training, cell.data
    start = weights_on_ring(cell)[0][:, :, 0]
    units, inputs = start.shape[2:]
    chosen = np.linspace(0, len(data.x), min(SAMPLES, len(data.x)), endpoint=False, dtype=int)
    x, y = data.x[chosen], data.y[chosen, 0]
    moved = np.concatenate([np.roll(x, site, axis=1) for site in range(0, inputs, inputs // units)])
    rate = training.flow_step(len(data.x))
    steps = max(training.steps // REFRESHES[-1], 1) * REFRESHES[-1]

    def simulated(start: Weights, every: int, shared: bool) -> Weights:
        end, normals = np.array([steps]), shared_normals if shared else None
        path = relinearised_descent(end, rate, every, start, moved, np.tile(y, units), normals)
        return path[..., 0, :, :]

    def solved(start: Weights, refreshes: int) -> Weights:
        each = start.reshape(-1, units, inputs)
        ends = [shifted_descent(refreshes, steps // refreshes, rate, w, x, y) for w in each]
        return np.reshape(ends, start.shape)

    shared, relu = simulated(start, steps // REFRESHES[-1], True), simulated(start, 1, False)
    errors = [relative_distance(solved(start, refreshes), shared) for refreshes in REFRESHES]
    shifts = shared_normals(start)
    shifted_relu = simulated(shifts, 1, False)
    before, *after = (
        np.linalg.norm(w - shared_normals(w), axis=(-2, -1)) for w in (start, shared, relu)
    )
    return {
        "shared_gates_error": per_run(cell, np.stack(errors, axis=-1), refreshes=REFRESHES),
        "shifted_relu_error": per_run(cell, relative_distance(solved(shifts, steps), shifted_relu)),
        "relu_error": per_run(cell, relative_distance(solved(start, steps), relu)),
        "shared_gates_uneven": per_run(cell, after[0] / before),
        "relu_uneven": per_run(cell, after[1] / before),
    }
