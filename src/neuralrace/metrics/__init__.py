"""Metrics: one file per concept, one entry here each."""

from neuralrace.metrics.alignment import alignment
from neuralrace.metrics.analytic_fit import analytic_fit
from neuralrace.metrics.balance import balance
from neuralrace.metrics.describe import Measure
from neuralrace.metrics.growth_bound import growth_bound
from neuralrace.metrics.interference import interference
from neuralrace.metrics.layer_norm_gaps import layer_norm_gaps
from neuralrace.metrics.layer_ratio import layer_ratio
from neuralrace.metrics.learning_times import learning_times
from neuralrace.metrics.linearisation import linearisation
from neuralrace.metrics.rate_gaps import rate_gaps
from neuralrace.metrics.unaligned_growth import unaligned_growth
from neuralrace.spec import Metric

METRICS: dict[Metric, Measure] = {
    "alignment": alignment,
    "analytic_fit": analytic_fit,
    "balance": balance,
    "growth_bound": growth_bound,
    "interference": interference,
    "layer_norm_gaps": layer_norm_gaps,
    "layer_ratio": layer_ratio,
    "learning_times": learning_times,
    "linearisation": linearisation,
    "rate_gaps": rate_gaps,
    "unaligned_growth": unaligned_growth,
}

__all__ = ["METRICS"]
