"""Gates of the units of a ReLU network in clusters, and the pathways made of them (fig. 8)."""

from matplotlib.figure import Figure as Canvas

from neuralrace.errors import UserError
from neuralrace.figures import gated, style
from neuralrace.records.results import Results
from neuralrace.registry import Figure

SHOWN = (2, 3, 4)
"""Numbers of clusters, as in the paper."""


@Figure(
    reads={
        "contextual": {
            "metrics": "identified_centroids identified_gates identified_share",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Centroids of clusters, and gates of their pathways, by sample.

    Raises:
        UserError: gates do not make as many clusters.
    """
    cell = results.cell("contextual")
    centroids, gates, shares = (
        gated.smallest(cell.get("metrics", f"identified_{name}", source="training"))
        for name in ("centroids", "gates", "share")
    )
    found = [count for count in SHOWN if shares.sel(clusters=count).notnull().any()]
    if not found:
        raise UserError(f"{cell.name}: gates are too few kinds for {SHOWN[0]} clusters to draw")
    figure = Canvas(figsize=(style.COLUMN, 0.7 + sum(0.2 + 0.17 * count for count in found)))
    axes = figure.subplots(
        len(found), 2, sharex=True, squeeze=False, height_ratios=[1 + count for count in found]
    )
    for row, count in zip(axes, found, strict=True):
        sizes = shares.sel(clusters=count).dropna("pathway")
        names = [f"{share:.0%}" for share in sizes.values]
        numbers = [str(pathway) for pathway in sizes["pathway"].values]
        for ax, values, labels in zip(row, (centroids, gates), (names, numbers), strict=True):
            shown = values.sel(clusters=count, pathway=sizes["pathway"])
            shades = style.heat(ax, shown.values, 0, 1, labels)
            for pathway in range(1, len(sizes)):
                ax.axhline(pathway - 0.5, color="0.5", linewidth=0.5)
            gated.name_contexts(ax.xaxis, gated.task(cell))
        row[0].set_ylabel(f"$k$ = {count}")
    for ax in axes[-1]:
        ax.set_xlabel("context")
    figure.colorbar(shades, ax=axes, label="share open", aspect=25)
    style.letters(axes[0], ["units of a cluster", "pathway"])
    return figure
