"""Metrics: one file per concept, one entry here each."""

from neuralrace.metrics.alignment import alignment
from neuralrace.metrics.analytic_fit import analytic_fit
from neuralrace.metrics.balance import balance
from neuralrace.metrics.cell_types import cell_types
from neuralrace.metrics.describe import Measure
from neuralrace.metrics.growth_bound import growth_bound
from neuralrace.metrics.half_times import half_times
from neuralrace.metrics.interference import interference
from neuralrace.metrics.layer_norm_gaps import layer_norm_gaps
from neuralrace.metrics.layer_ratio import layer_ratio
from neuralrace.metrics.learning_times import learning_times
from neuralrace.metrics.linearisation import linearisation
from neuralrace.metrics.pathway_share import pathway_share
from neuralrace.metrics.rate_gaps import rate_gaps
from neuralrace.metrics.shared_representation import shared_representation
from neuralrace.metrics.stages import stages
from neuralrace.metrics.unaligned_growth import unaligned_growth
from neuralrace.metrics.value_ratio import value_ratio
from neuralrace.metrics.zero_shot import zero_shot
from neuralrace.spec import Metric

METRICS: dict[Metric, Measure] = {
    "alignment": alignment,
    "analytic_fit": analytic_fit,
    "balance": balance,
    "cell_types": cell_types,
    "growth_bound": growth_bound,
    "half_times": half_times,
    "interference": interference,
    "layer_norm_gaps": layer_norm_gaps,
    "layer_ratio": layer_ratio,
    "learning_times": learning_times,
    "linearisation": linearisation,
    "pathway_share": pathway_share,
    "rate_gaps": rate_gaps,
    "shared_representation": shared_representation,
    "stages": stages,
    "unaligned_growth": unaligned_growth,
    "value_ratio": value_ratio,
    "zero_shot": zero_shot,
}

__all__ = ["METRICS"]
