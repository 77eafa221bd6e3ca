"""Outputs of a ReLU network and of gated networks on the plateaus of their losses."""

import numpy as np
import xarray as xr
from jaxtyping import Float

from neuralrace.config.cell import Record
from neuralrace.errors import configured_as
from neuralrace.extensions.registry import Metric
from neuralrace.metrics.loss.plateaus import PLATEAUS, plateaus_of
from neuralrace.metrics.values import Values, per_run
from neuralrace.results.cells import CellResults

LAST = 0.2
"""Share of the initial loss at which all plateaus are over. Candidates are trained until all ReLU
networks are there."""


@Metric(
    requires="candidates full_batch candidates_fit",
    observables="output_curve",
    trains=True,
    variables={
        "plateau_output_error": (
            "candidate plateau",
            "|f - g|^2/|y|^2 between the ReLU network and a candidate, each on its own plateau",
        ),
        "other_plateau_output_error": (
            "candidate plateau",
            "the same, with the candidate on its other plateau",
        ),
        "candidate_plateau_length": (
            "candidate plateau",
            "flow time between the drops at the ends of a candidate's plateau",
            "tau",
        ),
    },
)
def plateau_outputs(cell: CellResults) -> Values:
    """Distance of the ReLU network from every candidate on the first plateaus of the loss.

    Plateaus are those of the metric `plateaus`. Each network is on its own, so that neither time
    nor loss has to be equal. The error is 0 for equal outputs, and NaN without such a plateau.

    Source: Jarvis et al., "Make Haste Slowly", sec. 6, fig. 6, which compares samples of outputs.
    """
    # imported here, so that other metrics do not load JAX
    from neuralrace.theory.reln.imitation import altered, imitate

    spec, y = cell.spec, cell.data.y
    loss = cell.trajectory["loss"]
    left = (loss / loss.isel(time=0, drop=True)).max(("init_scale", "seed"))
    over = np.flatnonzero(left <= LAST)
    steps = int(loss["time"][over[0] if len(over) else -1])
    record = Record(every=spec.record.every, snapshots=1)
    training = spec.training.model_copy(update={"steps": steps})
    short = altered(spec, training=training, record=record)
    own, _ = _on_plateaus(loss.values, cell.trajectory["output_curve"].values)
    errors, others, lengths = [], [], []
    for name, network in spec.candidates.items():
        with configured_as(f"candidates.{name}"):
            trained = imitate(short, network).variables
        outputs, length = _on_plateaus(trained["loss"], trained["outputs"])
        lengths.append(length * float(cell.flow_time[1]))
        for distances, order in ((errors, slice(None)), (others, slice(None, None, -1))):
            distance = np.sum((own - outputs[..., order, :, :]) ** 2, axis=(-2, -1))
            distances.append(distance / np.sum(y**2))

    def by_candidate(values: list[np.ndarray]) -> xr.DataArray:
        labels = {"candidate": list(spec.candidates), "plateau": PLATEAUS}
        return per_run(cell, np.stack(values, axis=2), **labels)

    return {
        "plateau_output_error": by_candidate(errors),
        "other_plateau_output_error": by_candidate(others),
        "candidate_plateau_length": by_candidate(lengths),
    }


def _on_plateaus(
    loss: Float[np.ndarray, "*runs time"], outputs: Float[np.ndarray, "*runs time sample output"]
) -> tuple[Float[np.ndarray, "*runs _plateau sample output"], Float[np.ndarray, "*runs _plateau"]]:
    """Outputs on the plateaus of each run, and lengths in records; NaN where absent."""
    of_each = np.vectorize(plateaus_of, signature="(t),(t)->(p),(p),(p)")
    _, moments, lengths = of_each(loss / loss[..., :1], np.arange(loss.shape[-1], dtype=float))
    there = np.isfinite(moments)
    at = np.where(there, moments, 0).astype(int)[..., None, None]
    found = np.take_along_axis(outputs, at, axis=-3)
    return np.where(there[..., None, None], found, np.nan), lengths
