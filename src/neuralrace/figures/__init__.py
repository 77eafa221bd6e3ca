"""Figures: one module per figure, one entry here each.

The figure `paper/figure` is drawn by `neuralrace.figures.<paper>.<figure>.draw`. This registry
loads neither xarray nor matplotlib, so that the workflow can plan with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Figure:
    """What a figure is drawn from."""

    cells: tuple[str, ...]
    """Globs over cell identifiers `paper/experiment/label`."""
    files: tuple[str, ...]
    """Kinds of files it reads of each cell: trajectory, theory, metrics."""

    def matching(self, cell_ids: Sequence[str]) -> list[str]:
        """The cells that the figure shows, in the order given."""
        return [cell for cell in cell_ids if any(fnmatchcase(cell, glob) for glob in self.cells)]

    def inputs(self, cell_ids: Sequence[str]) -> list[str]:
        """Paths of the files it reads, below the results folder."""
        return [f"{cell}/{kind}.nc" for cell in self.matching(cell_ids) for kind in self.files]


def _figure(paper: str, experiments: str, files: str) -> Figure:
    return Figure(tuple(f"{paper}/{name}/*" for name in experiments.split()), tuple(files.split()))


FIGURES: dict[str, Figure] = {
    "deep_linear/alignment": _figure("deep_linear", "alignment unaligned", "trajectory"),
    "deep_linear/deep_vs_shallow": _figure(
        "deep_linear", "semantic_deep semantic_shallow", "trajectory theory metrics"
    ),
    "deep_linear/exact": _figure("deep_linear", "exact step_size", "trajectory theory metrics"),
    "deep_linear/imbalance": _figure("deep_linear", "imbalance", "trajectory theory metrics"),
    "deep_linear/interference": _figure(
        "deep_linear", "interference_pair interference_many", "trajectory metrics"
    ),
    "deep_linear/rotation": _figure("deep_linear", "rotation", "trajectory theory"),
    "deep_linear/semantic": _figure("deep_linear", "semantic_deep", "trajectory"),
    "deep_linear/staircase": _figure("deep_linear", "staircase", "trajectory theory"),
    "deep_linear/time_to_learn": _figure("deep_linear", "time_to_learn", "metrics"),
    "layer_dynamics/bias": _figure(
        "layer_dynamics", "relu relu_biases images", "trajectory metrics"
    ),
    "layer_dynamics/bound_depth": _figure(
        "layer_dynamics", "growth small_weights", "trajectory metrics"
    ),
    "layer_dynamics/drift": _figure("layer_dynamics", "step_size relu", "metrics"),
    "layer_dynamics/glorot_moments": _figure("layer_dynamics", "glorot_moments", "metrics"),
    "layer_dynamics/layer_ratio": _figure(
        "layer_dynamics", "unequal_layers", "trajectory theory metrics"
    ),
    "layer_dynamics/norm_gaps": _figure(
        "layer_dynamics", "growth small_weights balanced_start", "trajectory metrics"
    ),
    "layer_dynamics/norms_deep": _figure("layer_dynamics", "growth", "trajectory metrics"),
    "layer_dynamics/norms_shallow": _figure("layer_dynamics", "growth", "trajectory metrics"),
    "layer_dynamics/relu_images": _figure("layer_dynamics", "images", "trajectory metrics"),
    "localization/classes": _figure(
        "localization",
        "relu relu_low_gain relu_sizes trained_readout relu_biases erf erf_offset sigmoid "
        "erf_without_biases sigmoid_without_biases",
        "metrics",
    ),
    "localization/closed_forms": _figure(
        "localization", "closed_forms", "trajectory theory metrics"
    ),
    "localization/data": _figure("localization", "relu relu_low_gain single_pulse", "trajectory"),
    "localization/evolving": _figure("localization", "evolving", "trajectory metrics"),
    "localization/fourier": _figure("localization", "ring", "metrics"),
    "localization/gate_flips": _figure("localization", "gate_flips", "metrics"),
    "localization/gating": _figure("localization", "gating prediction", "metrics"),
    "localization/marginals": _figure("localization", "marginals relu relu_low_gain", "metrics"),
    "localization/one_unit": _figure(
        "localization", "one_unit prediction", "trajectory theory metrics"
    ),
    "localization/prediction": _figure("localization", "prediction", "trajectory theory metrics"),
    "localization/receptive_fields": _figure(
        "localization", "relu relu_low_gain erf sigmoid", "trajectory metrics"
    ),
    "localization/single_pulse": _figure("localization", "single_pulse", "trajectory metrics"),
    "make_haste/clusters": _figure("make_haste", "contextual", "metrics"),
    "make_haste/contexts": _figure(
        "make_haste",
        "three_contexts four_contexts five_contexts "
        "three_contexts_gated four_contexts_gated five_contexts_gated",
        "trajectory theory",
    ),
    "make_haste/contextual": _figure(
        "make_haste", "contextual contextual_gated", "trajectory theory metrics"
    ),
    "make_haste/elbow": _figure("make_haste", "contextual", "metrics"),
    "make_haste/gate_flips": _figure(
        "make_haste", "three_contexts four_contexts five_contexts two_hidden", "metrics"
    ),
    "make_haste/head_start": _figure(
        "make_haste", "context_stage context_stage_four three_contexts_gated", "trajectory theory"
    ),
    "make_haste/identifiability": _figure(
        "make_haste", "three_contexts four_contexts five_contexts", "metrics"
    ),
    "make_haste/lemma": _figure("make_haste", "lemma", "trajectory"),
    "make_haste/selectivity": _figure(
        "make_haste", "three_contexts four_contexts five_contexts", "metrics"
    ),
    "make_haste/semantic": _figure(
        "deep_linear", "semantic_deep semantic_shallow", "trajectory theory"
    ),
    "make_haste/similarity": _figure(
        "make_haste", "contextual contextual_gated", "trajectory metrics"
    ),
    "make_haste/task": _figure("make_haste", "contextual_gated", "trajectory"),
    "make_haste/two_hidden": _figure(
        "make_haste", "one_hidden two_hidden two_hidden_gated", "trajectory metrics"
    ),
    "make_haste/xor_boundary": _figure("make_haste", "xor_margin", "metrics"),
    "make_haste/xor_margin": _figure("make_haste", "xor_margin", "trajectory theory metrics"),
    "neural_race/apart": _figure("neural_race", "pathways_apart", "trajectory metrics"),
    "neural_race/background_modes": _figure(
        "deep_linear", "semantic_deep semantic_shallow", "trajectory theory"
    ),
    "neural_race/gating_schemes": _figure(
        "neural_race",
        "generalisation_random pathways pathways_apart race xor_gated",
        "trajectory",
    ),
    "neural_race/generalisation": _figure("neural_race", "generalisation", "trajectory metrics"),
    "neural_race/generalisation_masks": _figure(
        "neural_race", "generalisation*", "trajectory metrics"
    ),
    "neural_race/graph": _figure("neural_race", "contexts", "trajectory theory"),
    "neural_race/init_scale": _figure("neural_race", "init_scale", "trajectory metrics"),
    "neural_race/init_scale_maps": _figure("neural_race", "init_scale", "trajectory"),
    "neural_race/natural_images": _figure(
        "neural_race",
        "images images_cross_entropy images_cifar images_cifar_cross_entropy "
        "images_init_scale images_init_scale_cross_entropy images_init_scale_relu",
        "trajectory metrics",
    ),
    "neural_race/natural_images_controls": _figure(
        "neural_race", "images_controls images", "trajectory metrics"
    ),
    "neural_race/natural_images_partners": _figure(
        "neural_race",
        "images images_five images_random images_small_init images_twenty",
        "trajectory metrics",
    ),
    "neural_race/pathways": _figure(
        "neural_race",
        "pathways pathways_decoupled pathways_step_size",
        "trajectory theory metrics",
    ),
    "neural_race/race": _figure("neural_race", "race", "trajectory theory metrics"),
    "neural_race/structural_forms": _figure("neural_race", "structural_forms", "trajectory"),
    "neural_race/xor": _figure("neural_race", "xor_relu xor_gated", "trajectory theory metrics"),
}
