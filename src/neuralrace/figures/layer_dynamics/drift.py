"""What training conserves, against the step size."""

from matplotlib.figure import Figure as Canvas

from neuralrace.figures import style
from neuralrace.records.results import Results
from neuralrace.registry import Figure

QUANTITIES = {
    "neuron_drift": "diagonal of $C$",
    "offdiagonal_drift": "off-diagonal part of $C$",
}


@Figure(
    reads={
        "step_size": {
            "metrics": "imbalance_drift",
        },
        "relu": {
            "metrics": "neuron_drift offdiagonal_drift",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Relative drift of C against the learning rate in a linear and in a ReLU network."""
    linear, relu = results.cells("step_size"), results.cells("relu")
    figure, axes = style.panels(2, height=1.8)
    whole, parts = axes[:, 0]
    entries = []
    rates = [cell.spec.training.learning_rate for cell in linear]
    pairs = linear[0].get("metrics", "imbalance_drift")["pair"].values
    for index, (pair, colour) in enumerate(zip(pairs, style.ordered(len(pairs)), strict=True)):
        look = {"color": colour, "marker": style.marker(index)}
        for rate, cell in zip(rates, linear, strict=True):
            drift = cell.get("metrics", "imbalance_drift").isel(init_scale=0).sel(pair=pair)
            style.points(whole, rate, drift, **look)
        top = linear[rates.index(max(rates))].get("metrics", "imbalance_drift")
        style.slope_one(whole, rates, float(top.isel(init_scale=0).sel(pair=pair).mean("seed")))
        entries.append(style.entry(f"a: layers {pair} and {pair + 1}", linestyle="", **look))
    style.loglog(whole, rates)

    rates = [cell.spec.training.learning_rate for cell in relu]
    for index, (metric, name) in enumerate(QUANTITIES.items()):
        look = {"color": style.distinct(index), "marker": style.marker(index)}
        drifts = [cell.get("metrics", metric).isel(init_scale=0).max("pair") for cell in relu]
        for rate, drift in zip(rates, drifts, strict=True):
            style.points(parts, rate, drift, **look)
        entries.append(style.entry(f"b: {name}", linestyle="", **look))
        if metric == "neuron_drift":
            style.slope_one(parts, rates, float(drifts[rates.index(max(rates))].mean("seed")))
    style.loglog(parts, rates)
    for ax in axes[:, 0]:
        ax.set(xlabel="learning rate", ylabel="largest drift over\nfinal squared norms")
    style.letters(
        axes[:, 0], ["linear network: $C$ of adjacent layers", "ReLU network without biases"]
    )
    style.legend(figure, [*entries, style.entry("slope 1", **style.GUIDE)], columns=2)
    return figure
