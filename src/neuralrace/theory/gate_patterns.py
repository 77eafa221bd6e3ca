"""Realisable gating patterns of a ReLU unit without bias, and lemma 4.1 on contextual inputs.

A unit with input weights w is on for the samples with w.x > 0 and off for the others. Its gating
pattern is a row of a Boolean array, (sample,).

Source: Jarvis, Klein, Rosman, Saxe, "Make Haste Slowly", lemma 4.1 and appendix D.
"""

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import linprog


def realisable_patterns(
    x: Float[np.ndarray, "sample input"], strict: bool = False
) -> Bool[np.ndarray, "pattern sample"]:
    """All gating patterns over the samples that some weights realise.

    Patterns are extended sample by sample. Linear programming decides whether the half-spaces of
    the samples intersect. A pattern that misses by an angle of about 1e-7 or less counts as
    realisable. The number of patterns, and so the run time, grows with the number of samples to the
    power of the rank of the inputs; a dozen samples take seconds.

    Args:
        x: inputs, a sample per row.
        strict: whether off means w.x < 0, as in a neighbourhood of w, instead of w.x <= 0, as for
            the unit itself. The two agree if some direction has a positive product with all
            inputs, for example with one-hot inputs.

    Returns:
        True where the unit is on; patterns in the order of binary numbers.

    Raises:
        RuntimeError: if the solver fails.
    """
    length = np.linalg.norm(x, axis=1, keepdims=True)
    directions = np.divide(x, length, where=length > 0, out=np.zeros_like(x))
    patterns = np.zeros((1, 0), dtype=bool)
    for count in range(1, len(x) + 1):
        longer = np.hstack(
            [np.repeat(patterns, 2, axis=0), np.tile([[False], [True]], (len(patterns), 1))]
        )
        kept = [_is_realisable(directions[:count], pattern, strict) for pattern in longer]
        patterns = longer[kept]
    return patterns


def consistent_with_lemma(
    patterns: Bool[np.ndarray, "pattern sample"],
    contexts: Int[np.ndarray, " sample"],
    objects: Int[np.ndarray, " sample"],
) -> Bool[np.ndarray, " pattern"]:
    """Which patterns agree with lemma 4.1 or its proof: by context, by object, or one sample.

    The lemma allows gates that depend on the context only, and gates on a single sample. Its proof
    also finds gates that depend on the object only, and discards them as useless for the task; here
    they count as consistent.

    Args:
        patterns: True where a unit is on.
        contexts: context of each sample.
        objects: object of each sample.

    Source: Jarvis, Klein, Rosman, Saxe, lemma 4.1 and appendix D. The lemma does not hold as
    stated. Its proof shows less: no unit is on for two samples and off for the two samples that
    have their contexts exchanged.
    """
    single = patterns.sum(axis=1) == 1
    return depends_on(patterns, contexts) | depends_on(patterns, objects) | single


def depends_on(
    patterns: Bool[np.ndarray, "pattern sample"], labels: Int[np.ndarray, " sample"]
) -> Bool[np.ndarray, " pattern"]:
    """Which patterns are functions of a label: equal on all samples with the same label.

    Args:
        patterns: True where a unit is on.
        labels: label of each sample, such as its context.
    """
    constant = np.ones(len(patterns), dtype=bool)
    for label in np.unique(labels):
        group = patterns[:, labels == label]
        constant &= group.all(axis=1) | ~group.any(axis=1)
    return constant


def _is_realisable(
    x: Float[np.ndarray, "sample input"], on: Bool[np.ndarray, " sample"], strict: bool
) -> bool:
    """Whether some weights have w.x >= 1 where the unit is on: w.x > 0, up to the length of w."""
    sign = np.where(on, -1.0, 1.0)
    bound = np.where(on | strict, -1.0, 0.0)
    result = linprog(np.zeros(x.shape[1]), sign[:, None] * x, bound, bounds=(None, None))
    if result.status not in (0, 2):
        raise RuntimeError(f"gate pattern {on.astype(int)} not decided: {result.message}")
    return result.status == 0
