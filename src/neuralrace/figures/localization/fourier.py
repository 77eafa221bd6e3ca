"""Which second moments of gated inputs the Fourier transform diagonalises (sec. 5, idea 1)."""

from matplotlib.figure import Figure as Canvas

from neuralrace.figures import frozen, style
from neuralrace.records.results import Results
from neuralrace.registry import Figure

DISTANCES = {
    "input_circulance_law": "inputs, by their law",
    "input_circulance_samples": "inputs, on samples",
    "block_circulance_same": "behind one gate, $A_{ii}$",
    "block_circulance_other": "behind two gates, $A_{ij}$",
    "joint_violation": "$A$ outside the blocks",
    "joint_eigenvalue_error": "eigenvalues by block",
}
"""Metrics and what they are about; joint shifts come last."""
CIRCULANT = 4
"""How many of them are distances from circulant."""


@Figure(
    reads={
        "ring": {
            "metrics": (
                "block_circulance_other block_circulance_same input_circulance_law "
                "input_circulance_samples joint_eigenvalue_error joint_violation"
            ),
        },
    }
)
def draw(results: Results) -> Canvas:
    """Distance from circulant, and from block-diagonal by the joint shift, by gating scheme."""
    cells = results.cells("ring")
    figure = Canvas(figsize=(style.COLUMN, 3.3))
    axes = figure.subplots(2, 1, sharex=True, height_ratios=(CIRCULANT, len(DISTANCES) - CIRCULANT))
    rows = list(DISTANCES.items())
    entries = []
    for index, cell in enumerate(cells):
        look = {"color": style.distinct(index), "marker": style.marker(index)}
        entries.append(style.entry(frozen.scheme(frozen.gates(cell)), linestyle="", **look))
        offset = 0.24 * (index - (len(cells) - 1) / 2)
        for ax, shown in zip(axes, (rows[:CIRCULANT], rows[CIRCULANT:]), strict=True):
            for row, (metric, _) in enumerate(shown):
                values = cell.get("metrics", metric)
                style.points(ax, row + offset, values, across=True, **look)
    for ax, shown in zip(axes, (rows[:CIRCULANT], rows[CIRCULANT:]), strict=True):
        ax.set_yticks(range(len(shown)), [name for _, name in shown])
        ax.set_ylim(len(shown) - 0.5, -0.5)
        for row in range(1, len(shown)):
            ax.axhline(row - 0.5, color="0.8", linewidth=0.5, zorder=0)
    axes[0].set_xlabel("relative distance from circulant")
    axes[1].set_xlabel("relative distance")
    style.letters(axes, ["second moments of inputs", "blocks of the joint shift"])
    style.legend(figure, entries, columns=2)
    return figure
