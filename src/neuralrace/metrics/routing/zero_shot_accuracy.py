"""Zero-shot accuracy of routing networks: on pairs of domains that are not trained."""

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values
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
    """Final share of held-out images that are misclassified, and how much accuracy transfers.

    The transfer is the accuracy above chance of untrained pairs over that of trained pairs: 1 if
    everything that is learned transfers, 0 if untrained pairs are guessed. Chance is one over the
    number of classes, also for domains that permute the classes at random. Values of untrained
    pairs are NaN if every pair is trained. The transfer is also NaN if trained pairs are not above
    chance.

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
