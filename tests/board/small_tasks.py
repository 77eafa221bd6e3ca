"""Three small tasks of a benchmark, and their cells."""

from builders import results_in_memory, solved_theory, trained_trajectory
from neuralrace.config.load import read_plan
from neuralrace.metrics.dataset import metrics_dataset

COMMON = {
    "init": {"name": "normal"},
    "init_scales": [0.03, 0.3, 1.0],
    "seeds": 3,
    "solutions": "applicable",
    "metrics": ["theory_scores"],
}
TASKS = {
    # values that are sorted neither as numbers nor as text, and other solutions for two layers
    "linear_width": COMMON
    | {
        "dataset": {"name": "modes", "singular_values": [3.0, 1.0], "inputs": 4, "outputs": 3},
        "network": {"name": "layered"},
        "training": {"learning_rate": 0.02, "steps": 600},
        "record": {"every": 10, "observables": ["mode_strength", "layer_norm"]},
        "sweep": {"network.hidden": [[10], [3, 3], [2]]},
    },
    "relu_fields": COMMON
    | {
        "dataset": {"name": "single_pulse", "inputs": 8, "widths": [[4, 4], [2, 2]]},
        "network": {"name": "layered", "hidden": [5], "activation": "relu", "readout": "mean"},
        "training": {"learning_rate": 0.05, "steps": 40},
        "record": {"every": 2, "snapshots": 2, "observables": ["weights"]},
        "seeds": 4,
    },
    "linear_alone_drawn_7": COMMON
    | {
        "dataset": {"name": "gaussian_mixture", "samples_per_component": 5, "inputs": 3},
        "network": {"name": "layered", "hidden": [4]},
        "training": {"learning_rate": 0.02, "steps": 200},
        "record": {"every": 10, "observables": ["mode_strength"]},
        "init_scales": [0.1, 1.0],
    },
}


def planned(tasks):
    """The cells of tasks, by identifier."""
    return read_plan({"experiments": {"benchmark": tasks}}, {}).cells


def finished(name, cell):
    """A cell that is trained, solved and scored."""
    theory = solved_theory(cell) if cell.solutions else None
    results = results_in_memory(cell, trained_trajectory(cell), theory)
    results.name = name
    results.metrics = metrics_dataset(results, in_memory=True)
    return results
