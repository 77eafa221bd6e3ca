"""Which pathways a gated network answers through, and when they learn."""

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.describe import Values, crossing_time
from neuralrace.results.cells import CellResults


@Metric(
    observables="pathway_power|pathway_values",
    variables={
        "pathway_share": ("pathway", "share of a pathway in the power of all"),
        "pathway_half_time": (
            "pathway pathway_mode",
            "flow time to half of the singular value that a pathway ends with",
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
    """Share of pathways in the squared maps of all at the end, and when each mode was half learned.

    Of pathways side by side, each by itself. Of a routing network, the first family of pathway
    blocks: with gates `parallel` it is the shared block and the second gives every pair of domains
    a pathway of its own; untrained pairs are NaN where every pair is trained. Cross terms between
    pathways count for none, so that all shares add up to 1.

    The half time of a mode of a pathway side by side is when its singular value first comes to half
    of that at the end; singular values are in their order by size at each time.

    Source: Saxe, Sodhani, Lewallen 2022, fig. 5; Jarvis et al., app. E, for pathways side by side.
    """
    if "pathway_values" in cell.trajectory:
        values = cell.trajectory["pathway_values"]
        power = (values.isel(time=-1, drop=True) ** 2).sum("pathway_mode", skipna=False)
        share = power / power.sum("pathway", skipna=False)
        half = crossing_time(values, values.isel(time=-1, drop=True) / 2, cell.flow_time)
        return {
            "pathway_share": share,
            "pathway_half_time": half,
        }
    trained = cell.trajectory["trained_power"]
    powers = {"trained": trained, "untrained": cell.trajectory["untrained_power"]}
    values = {}
    for pairs, power in powers.items():
        final = power.isel(time=-1, drop=True)
        values[f"{pairs}_pathway_share"] = final.isel(family=0, drop=True) / final.sum("family")
    return values
