"""Which samples a ReLU unit without bias can be on for, and lemma 4.1 about contextual inputs.

A unit with input weights w is on for the samples with w.x > 0 and off for the others. Its pattern
is a row of a Boolean array, (sample,).

Source: Jarvis, Klein, Rosman, Saxe, "Make Haste Slowly", lemma 4.1 and appendix D.
"""

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import linprog


def realisable_patterns(
    x: Float[np.ndarray, "sample input"], strict: bool = False
) -> Bool[np.ndarray, "pattern sample"]:
    """All patterns over the samples that some weights give rise to.

    Found by linear programming, a sample at a time: a pattern is extended where the half-spaces of
    its samples meet. A pattern that misses by an angle of about 1e-7 or less counts as realisable.
    The number of patterns, and so the work, grows as a power of the samples, the rank of the
    inputs; a dozen samples take seconds.

    Args:
        x: inputs, a sample per row.
        strict: whether off means w.x < 0, as in a neighbourhood of w, rather than w.x <= 0, as for
            the unit itself. The two agree if some direction has a positive product with all
            inputs, as for one-hot ones.

    Returns:
        True where the unit is on; patterns in the order of binary numbers.

    Raises:
        RuntimeError: if the solver gives up.
    """
    length = np.linalg.norm(x, axis=1, keepdims=True)
    directions = np.divide(x, length, where=length > 0, out=np.zeros_like(x))
    patterns = np.zeros((1, 0), dtype=bool)
    for seen in range(1, len(x) + 1):
        longer = np.hstack(
            [np.repeat(patterns, 2, axis=0), np.tile([[False], [True]], (len(patterns), 1))]
        )
        kept = [_is_realisable(directions[:seen], pattern, strict) for pattern in longer]
        patterns = longer[kept]
    return patterns


def consistent_with_lemma(
    patterns: Bool[np.ndarray, "pattern sample"],
    contexts: Int[np.ndarray, " sample"],
    objects: Int[np.ndarray, " sample"],
) -> Bool[np.ndarray, " pattern"]:
    """Which patterns lemma 4.1 and its proof name: by context, by object, or on a single sample.

    The lemma allows gates by context alone and single samples. Its proof finds gates by object
    alone as well, and sets them aside as no use to the task; they count as named here.

    Args:
        patterns: True where a unit is on.
        contexts: context of each sample.
        objects: object of each sample.

    Source: Jarvis, Klein, Rosman, Saxe, lemma 4.1 and appendix D. It does not hold as stated; what
    its proof shows is that no unit is on for two samples and off for those with the contexts of the
    two exchanged.
    """
    single = patterns.sum(axis=1) == 1
    return depends_on(patterns, contexts) | depends_on(patterns, objects) | single


def depends_on(
    patterns: Bool[np.ndarray, "pattern sample"], labels: Int[np.ndarray, " sample"]
) -> Bool[np.ndarray, " pattern"]:
    """Which patterns are alike on all samples of a label.

    Args:
        patterns: True where a unit is on.
        labels: what each sample belongs to, such as its context.
    """
    alike = np.ones(len(patterns), dtype=bool)
    for label in np.unique(labels):
        shown = patterns[:, labels == label]
        alike &= shown.all(axis=1) | ~shown.any(axis=1)
    return alike


def _is_realisable(
    x: Float[np.ndarray, "sample input"], on: Bool[np.ndarray, " sample"], strict: bool
) -> bool:
    """Whether weights exist with w.x >= 1 where on, which is w.x > 0 at some length of w."""
    sign = np.where(on, -1.0, 1.0)
    bound = np.where(on | strict, -1.0, 0.0)
    result = linprog(np.zeros(x.shape[1]), sign[:, None] * x, bound, bounds=(None, None))
    if result.status not in (0, 2):
        raise RuntimeError(f"gate pattern {on.astype(int)} not decided: {result.message}")
    return result.status == 0
