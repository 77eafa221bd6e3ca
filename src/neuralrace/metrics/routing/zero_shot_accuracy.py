"""How well a routing network classifies in pairs of domains that it was never trained on."""

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.describe import Values
from neuralrace.results.cells import CellResults


@Metric(
    requires="domains_of_images",
    observables="pair_accuracy",
    variables={
        "final_trained_misclassified": (
            "",
            "share of held-out images that trained pairs misclassify at the end",
        ),
        "final_untrained_misclassified": (
            "",
            "share of held-out images that untrained pairs misclassify at the end",
        ),
        "misclassified_gap": (
            "",
            "share of held-out images misclassified by untrained less that by trained pairs",
        ),
        "transfer": (
            "",
            "accuracy above chance of untrained over that of trained pairs at the end",
        ),
    },
)
def zero_shot_accuracy(cell: CellResults) -> Values:
    """Share of the held-out images that is misclassified at the end, and how much transfers.

    The transfer compares what untrained pairs have above chance with what trained pairs have: 1
    where all that was learned transfers, 0 where untrained pairs guess. Chance is one over the
    number of classes of the images; a domain that renames them at random is guessed no better. NaN
    where every pair is trained; the transfer also where trained pairs are no better than chance.

    Source: Saxe, Sodhani, Lewallen 2022, fig. 7.
    """
    trained, untrained = (
        cell.trajectory[name].isel(time=-1, drop=True)
        for name in ("trained_accuracy", "untrained_accuracy")
    )
    chance = 1 / cell.image_domains.outputs
    return {
        "final_trained_misclassified": 1 - trained,
        "final_untrained_misclassified": 1 - untrained,
        "misclassified_gap": trained - untrained,
        "transfer": (untrained - chance) / (trained - chance).where(trained > chance),
    }
