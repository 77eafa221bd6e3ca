"""Share and learning time of each pathway of a gated network."""

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values, crossing_time
from neuralrace.results.cells import CellResults


@Metric(
    observables="pathway_power|pathway_values",
    variables={
        "pathway_share": ("pathway", "share of a pathway in the power of all"),
        "pathway_half_time": (
            "pathway pathway_mode",
            "flow time to half of the singular value that a pathway ends with",
            "tau",
        ),
        "trained_pathway_share": (
            "",
            "share of the first family in the power of trained pairs at the end",
        ),
        "untrained_pathway_share": (
            "",
            "share of the first family in the power of untrained pairs at the end",
        ),
    },
)
def pathway_share(cell: CellResults) -> Values:
    """Share of pathways in the final squared maps of all, and the half time of their modes.

    Shares add up to 1: cross terms between pathways are left out. A gated network has a share for
    each pathway. A routing network has the share of its first family of pathway blocks. With gates
    `parallel`, this is the shared block, and the second family has one pathway for each pair of
    domains. The share of untrained pairs is NaN if every pair is trained.

    The half time is the flow time, in units of tau, at which a singular value of a pathway first
    reaches half of its final value. Singular values are sorted by size at each time.

    Source: Saxe, Sodhani, Lewallen 2022, fig. 5; Jarvis et al., app. E, for gated networks.
    """
    if "pathway_values" in cell.trajectory:
        values = cell.trajectory["pathway_values"]
        power = (values.isel(time=-1, drop=True) ** 2).sum("pathway_mode", skipna=False)
        share = power / power.sum("pathway", skipna=False)
        half = crossing_time(values, values.isel(time=-1, drop=True) / 2, cell.flow_time)
        return {"pathway_share": share, "pathway_half_time": half}
    trained = cell.trajectory["trained_power"]
    powers = {"trained": trained, "untrained": cell.trajectory["untrained_power"]}
    values = {}
    for pairs, power in powers.items():
        final = power.isel(time=-1, drop=True)
        values[f"{pairs}_pathway_share"] = final.isel(family=0, drop=True) / final.sum("family")
    return values
