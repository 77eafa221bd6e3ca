"""All metrics of a cell as one dataset."""

import numpy as np
import xarray as xr

from neuralrace.config.variables import RUN_AXES
from neuralrace.extensions.registry import METRICS
from neuralrace.metrics.describe import Values
from neuralrace.results.axes import provenance_attributes
from neuralrace.results.cells import CellResults
from neuralrace.results.schema import COORDINATES, SCHEMA_VERSION

PACKAGES = ("scipy", "scikit-learn", "jax", "jaxlib", "flax", "optax", "xarray", "netcdf4")


def metrics_dataset(cell: CellResults) -> xr.Dataset:
    """Every configured metric of a cell, as it is written to `metrics.nc`.

    Raises:
        UserError: what a metric asks of the samples or of theory is not given.
        ValueError: a metric gives something other than it declares.
    """
    trajectory = cell.trajectory
    values: dict[str, xr.DataArray] = {"diverged_at": trajectory["diverged_at"]}
    with np.errstate(divide="ignore", invalid="ignore"):
        for name in cell.spec.metrics:
            values |= _measured(name, cell)
    attrs = provenance_attributes(cell.name, cell.spec, "measure", PACKAGES)
    attrs |= {"title": f"Metrics of {cell.name}", "kind": "metrics", "schema": SCHEMA_VERSION}
    dataset = xr.Dataset(values, attrs=attrs)
    for name in dataset.coords:
        long_name = COORDINATES[str(name)]
        units = trajectory[name].attrs.get("units", "1") if name in trajectory.coords else "1"
        dataset[name].attrs = {"long_name": long_name, "units": units}
    return dataset


def _measured(name: str, cell: CellResults) -> Values:
    """The variables of one metric, with meaning and unit as declared and no other attributes.

    Raises:
        ValueError: a variable is not declared, or has other dimensions than declared.
    """
    metric, values = METRICS[name], {}
    declared = metric.declaration.outputs
    for variable, array in metric.load()(cell).items():
        where = f"metric {name!r} in {metric.module}: {variable!r}"
        if variable not in declared:
            raise ValueError(f"{where} is not declared")
        dims = tuple(str(dim) for dim in array.dims if dim not in RUN_AXES)
        known = declared[variable]
        if dims != known.dims:
            raise ValueError(f"{where} has dimensions {dims}, declared are {known.dims}")
        values[variable] = array.drop_attrs(deep=False).assign_attrs(
            long_name=known.long_name, units=known.units
        )
    return values
