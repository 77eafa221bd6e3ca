"""How well a routing network classifies in pairs of domains that it was never trained on."""

from neuralrace.metrics.describe import Values, described
from neuralrace.records.evidence import Evidence


def zero_shot_accuracy(evidence: Evidence) -> Values:
    """Share of the held-out images that is misclassified at the end, and how much transfers.

    The transfer compares what untrained pairs have above chance with what trained pairs have: 1
    where all that was learned transfers, 0 where untrained pairs guess. Chance is one over the
    number of classes of the images; a domain that renames them at random is guessed no better. NaN
    where every pair is trained; the transfer also where trained pairs are no better than chance.

    Raises:
        UserError: the cell shows no images.

    Source: Saxe, Sodhani, Lewallen 2022, fig. 7.
    """
    trained, untrained = (
        evidence.recorded(name, "pair_accuracy").isel(time=-1, drop=True)
        for name in ("trained_accuracy", "untrained_accuracy")
    )
    chance = 1 / evidence.image_domains.outputs
    return {
        "final_trained_misclassified": described(
            1 - trained, "share of held-out images that trained pairs misclassify at the end"
        ),
        "final_untrained_misclassified": described(
            1 - untrained, "share of held-out images that untrained pairs misclassify at the end"
        ),
        "misclassified_gap": described(
            trained - untrained,
            "share of held-out images misclassified by untrained less that by trained pairs",
        ),
        "transfer": described(
            (untrained - chance) / (trained - chance).where(trained > chance),
            "accuracy above chance of untrained over that of trained pairs at the end",
        ),
    }
