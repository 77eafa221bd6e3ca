"""Which pathways a routing network answers through."""

from neuralrace.metrics.describe import Values, described
from neuralrace.records.evidence import Evidence


def pathway_share(evidence: Evidence) -> Values:
    """Share of the first family of pathway blocks in the squared maps of all, at the end.

    With gates `parallel` the first family is the shared block and the second gives every pair of
    domains a pathway of its own. Cross terms between families count for none, so that the shares of
    all families add up to 1. Untrained pairs are NaN where every pair is trained.

    Source: Saxe, Sodhani, Lewallen 2022, fig. 5.
    """
    trained = evidence.recorded("trained_power", "pathway_power")
    powers = {"trained": trained, "untrained": evidence.trajectory["untrained_power"]}
    values = {}
    for pairs, power in powers.items():
        final = power.isel(time=-1, drop=True)
        values[f"{pairs}_pathway_share"] = described(
            final.isel(family=0, drop=True) / final.sum("family"),
            f"share of the first family in the power of {pairs} pairs at the end",
        )
    return values
