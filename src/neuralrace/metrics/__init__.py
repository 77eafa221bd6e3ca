"""Metrics: one file per concept, one entry here each."""

from neuralrace.metrics.alignment import alignment
from neuralrace.metrics.analytic_fit import analytic_fit
from neuralrace.metrics.balance import balance
from neuralrace.metrics.cell_types import cell_types
from neuralrace.metrics.context_selectivity import context_selectivity
from neuralrace.metrics.decision_boundary import decision_boundary
from neuralrace.metrics.describe import Measure
from neuralrace.metrics.frozen_gate_errata import frozen_gate_errata
from neuralrace.metrics.gate_flips import gate_flips
from neuralrace.metrics.gate_identification import gate_identification
from neuralrace.metrics.gate_prediction import gate_prediction
from neuralrace.metrics.gate_refresh import gate_refresh
from neuralrace.metrics.gating_loss import gating_loss
from neuralrace.metrics.gaussian_start import gaussian_start
from neuralrace.metrics.growth_bound import growth_bound
from neuralrace.metrics.half_times import half_times
from neuralrace.metrics.imitation import imitation
from neuralrace.metrics.interference import interference
from neuralrace.metrics.layer_linearity import layer_linearity
from neuralrace.metrics.layer_norm_gaps import layer_norm_gaps
from neuralrace.metrics.layer_ratio import layer_ratio
from neuralrace.metrics.learning_times import learning_times
from neuralrace.metrics.linearisation import linearisation
from neuralrace.metrics.pathway_share import pathway_share
from neuralrace.metrics.plateaus import plateaus
from neuralrace.metrics.rate_gaps import rate_gaps
from neuralrace.metrics.realisable_patterns import realisable_patterns
from neuralrace.metrics.receptive_field_fit import receptive_field_fit
from neuralrace.metrics.receptive_fields import receptive_fields
from neuralrace.metrics.relative_loss import relative_loss
from neuralrace.metrics.ridge_baseline import ridge_baseline
from neuralrace.metrics.ring_structure import ring_structure
from neuralrace.metrics.shared_representation import shared_representation
from neuralrace.metrics.stages import stages
from neuralrace.metrics.unaligned_growth import unaligned_growth
from neuralrace.metrics.uniqueness import uniqueness
from neuralrace.metrics.value_ratio import value_ratio
from neuralrace.metrics.zero_shot import zero_shot
from neuralrace.metrics.zero_shot_accuracy import zero_shot_accuracy
from neuralrace.spec import Metric

METRICS: dict[Metric, Measure] = {
    "alignment": alignment,
    "analytic_fit": analytic_fit,
    "balance": balance,
    "cell_types": cell_types,
    "context_selectivity": context_selectivity,
    "decision_boundary": decision_boundary,
    "frozen_gate_errata": frozen_gate_errata,
    "gate_flips": gate_flips,
    "gate_identification": gate_identification,
    "gate_prediction": gate_prediction,
    "gate_refresh": gate_refresh,
    "gating_loss": gating_loss,
    "gaussian_start": gaussian_start,
    "growth_bound": growth_bound,
    "half_times": half_times,
    "imitation": imitation,
    "interference": interference,
    "layer_linearity": layer_linearity,
    "layer_norm_gaps": layer_norm_gaps,
    "layer_ratio": layer_ratio,
    "learning_times": learning_times,
    "linearisation": linearisation,
    "pathway_share": pathway_share,
    "plateaus": plateaus,
    "rate_gaps": rate_gaps,
    "realisable_patterns": realisable_patterns,
    "receptive_field_fit": receptive_field_fit,
    "receptive_fields": receptive_fields,
    "relative_loss": relative_loss,
    "ridge_baseline": ridge_baseline,
    "ring_structure": ring_structure,
    "shared_representation": shared_representation,
    "stages": stages,
    "unaligned_growth": unaligned_growth,
    "uniqueness": uniqueness,
    "value_ratio": value_ratio,
    "zero_shot": zero_shot,
    "zero_shot_accuracy": zero_shot_accuracy,
}

__all__ = ["METRICS"]
