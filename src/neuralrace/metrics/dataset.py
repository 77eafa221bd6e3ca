"""All metrics of a cell as one dataset."""

import numpy as np
import xarray as xr

from neuralrace.config.variables import RUN_AXES
from neuralrace.extensions.registry import METRICS
from neuralrace.metrics.values import Values
from neuralrace.results.axes import provenance_attributes
from neuralrace.results.cells import CellResults
from neuralrace.results.schema import COORDINATES, SCHEMA_VERSION

PACKAGES = ("scipy", "scikit-learn", "jax", "jaxlib", "flax", "optax", "xarray", "netcdf4")


def metrics_dataset(cell: CellResults, in_memory: bool = False) -> xr.Dataset:
    """All configured metrics of a cell: the content of its `metrics.nc`.

    Args:
        cell: specification, trajectory and theory.
        in_memory: see `provenance_attributes`.

    Raises:
        UserError: the task or the theory of the cell lacks something that a metric needs.
        ValueError: a metric returns a variable that differs from its declaration.
    """
    trajectory = cell.trajectory
    values: Values = {"diverged_at": trajectory["diverged_at"]}
    with np.errstate(divide="ignore", invalid="ignore"):
        for name in cell.spec.metrics:
            values |= _measured(name, cell)
    attrs = provenance_attributes(cell.name, cell.spec, "measure", PACKAGES, in_memory)
    attrs |= {"title": f"Metrics of {cell.name}", "kind": "metrics", "schema": SCHEMA_VERSION}
    dataset = xr.Dataset(values, attrs=attrs)
    for name in dataset.coords:
        long_name = COORDINATES[str(name)]
        units = trajectory[name].attrs.get("units", "1") if name in trajectory.coords else "1"
        dataset[name].attrs = {"long_name": long_name, "units": units}
    return dataset


def _measured(name: str, cell: CellResults) -> Values:
    """The variables of one metric, with the declared meaning and unit as their only attributes.

    Raises:
        ValueError: a variable is not declared, or its dimensions are not the declared ones.
    """
    metric, values = METRICS[name], {}
    outputs = metric.declaration.outputs
    for variable, array in metric.load()(cell).items():
        where = f"metric {name!r} in {metric.module}: {variable!r}"
        if variable not in outputs:
            raise ValueError(f"{where} is not declared; add it to variables")
        dims = tuple(str(dim) for dim in array.dims if dim not in RUN_AXES)
        output = outputs[variable]
        if dims != output.dims:
            raise ValueError(f"{where} has dimensions {dims}; declared are {output.dims}")
        values[variable] = array.drop_attrs(deep=False).assign_attrs(
            long_name=output.long_name, units=output.units
        )
    return values
