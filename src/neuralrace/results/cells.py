"""The results of cells: each of them, and those of a results folder together.

Metrics take one cell while its files are being made, figures and claims those of a folder; both
are the same here. Whoever analyses results begins with `open_results`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import count, takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool, Int
from pydantic import ValidationError

from neuralrace.datasets import Data, DomainDataset, Domains
from neuralrace.datasets.image_domains import (
    ImageDomainDataset,
    ImageDomains,
    image_domains,
)
from neuralrace.errors import UserError, did_you_mean, shorten
from neuralrace.config.variables import REGISTRIES, FileKind, why_absent
from neuralrace.networks.gated import Gated
from neuralrace.networks.routing import Routing
from neuralrace.results.files import read_attributes, read_result
from neuralrace.results.checksums import REMEDY
from neuralrace.config.cell import Cell, flatten_keys

IDENTIFIER = ["paper", "experiment", "cell"]
"""What the parts of an identifier are."""


def named(attrs: Mapping[str, Any]) -> str:
    """The cell that the attributes of a file name, `paper/experiment/label`."""
    return "/".join(str(attrs.get(place)) for place in IDENTIFIER)


def figures_folder(folder: Path) -> Path:
    """Where the figures of a results folder are: in it, or else beside it."""
    within = folder / "figures"
    return within if within.is_dir() else folder.parent / "figures"


class CellResults:
    """One cell: what was asked for, what came out, and its task.

    Args:
        name: identifier `paper/experiment/label`.
        folder: holds `{trajectory,theory,metrics}.nc`; each is read when it is first asked for.
        spec: what was asked for; as the files say when absent.
        trajectory: in place of the file, as while a cell is made.
        theory: likewise.
        metrics: likewise.
        expected: digest of the specification that each file must have; any when absent.

    Example:
        >>> import neuralrace as nr
        >>> cell = nr.open_results("results")["deep_linear/exact/hidden-16"]
        >>> cell.trajectory["loss"].dims
        ('init_scale', 'seed', 'time')
        >>> float(cell.get("trajectory", "loss").isel(time=-1).max()) < 1e-3
        True
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        spec: Cell | None = None,
        trajectory: xr.Dataset | None = None,
        theory: xr.Dataset | None = None,
        metrics: xr.Dataset | None = None,
        expected: Mapping[str, str] | None = None,
    ):
        self.name = name
        self.folder = folder
        self.expected = expected or {}
        made = {"spec": spec, "trajectory": trajectory, "theory": theory, "metrics": metrics}
        vars(self).update({key: each for key, each in made.items() if each is not None})

    def __repr__(self) -> str:
        """Its identifier, and the kinds of files that it has."""
        return f"<CellResults {self.name}: {', '.join(self._there()) or 'no result files'}>"

    def path(self, kind: FileKind) -> Path:
        """One of its files."""
        return self.folder / f"{kind}.nc"

    def _there(self) -> list[FileKind]:
        """The kinds of files that are in its folder or in memory."""
        return [kind for kind in REGISTRIES if kind in vars(self) or self.path(kind).is_file()]

    @property
    def kinds(self) -> list[FileKind]:
        """The files that there are, or datasets in their place, in the order of their making.

        Raises:
            UserError: there is none.
        """
        found = self._there()
        if not found:
            raise UserError(f"{self.name}: no result files. Run the workflow to make them.")
        return found

    @cached_property
    def spec(self) -> Cell:
        """What was asked for, as the first file says: a trajectory, of training alone.

        Raises:
            UserError: a missing or damaged file, or one of another version.
        """
        kind = self.kinds[0]
        try:
            return Cell.model_validate_json(getattr(self, kind).attrs["spec"])
        except ValidationError as error:
            first = error.errors()[0]
            what = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
            raise UserError(
                f"{self.path(kind)}: its specification is none of this version ({what}); run the "
                "workflow again, or read it by the version that made it"
            ) from error

    def entries(self, kind: FileKind) -> dict[str, Any]:
        """What was asked for by dotted key, as one of the files says; its arrays are not read.

        Raises:
            UserError: a file that is missing, damaged, or of another cell.
        """
        return flatten_keys(json.loads(self.attributes(kind)["spec"]))

    def attributes(self, kind: FileKind) -> dict[str, Any]:
        """The attributes of one of the files; its arrays are not read.

        Raises:
            UserError: a file that is missing, damaged, or of another cell or specification.
        """
        loaded: xr.Dataset | None = vars(self).get(kind)
        if loaded is not None:
            return loaded.attrs
        path = self.path(kind)
        attrs = read_attributes(path, kind)
        self._refuse_other(attrs, path, kind)
        return attrs

    @cached_property
    def trajectory(self) -> xr.Dataset:
        """What training recorded."""
        return self._read("trajectory")

    @cached_property
    def theory(self) -> xr.Dataset:
        """What was solved for the same runs; nothing where no solution was asked for."""
        return self._read("theory") if self.path("theory").is_file() else xr.Dataset()

    @cached_property
    def metrics(self) -> xr.Dataset:
        """What was measured in both."""
        return self._read("metrics")

    def _read(self, kind: FileKind) -> xr.Dataset:
        """One of its files.

        Raises:
            UserError: missing or damaged, or the file of another cell or specification.
        """
        path = self.path(kind)
        dataset = read_result(path, kind)
        self._refuse_other(dataset.attrs, path, kind)
        return dataset

    def _refuse_other(self, attrs: Mapping[str, Any], path: Path, kind: FileKind) -> None:
        if (found := named(attrs)) != self.name:
            raise UserError(
                f"{path}: is the {kind} of {found}, not of {self.name}; put it where it belongs, "
                f"or {REMEDY.format(path=path)}"
            )
        specification = attrs["spec_sha256"]
        if self.expected.get(kind, specification) != specification:
            raise UserError(
                f"{path}: was computed from another specification than the configuration has now; "
                + REMEDY.format(path=path)
            )

    def get(self, kind: FileKind, variable: str, **labels: str) -> xr.DataArray:
        """A variable of one of the files, at the given labels.

        Raises:
            UserError: the file has no such variable or label; with what gives it.
        """
        dataset: xr.Dataset = getattr(self, kind)
        if variable not in dataset:
            wrong = why_absent(self.spec, kind, variable) or "run it again"
            raise UserError(f"{self.name}: {kind} has no {variable!r}: {wrong}")
        for dim, label in labels.items():
            if label not in dataset[dim]:
                there = ", ".join(map(str, dataset[dim].values))
                raise UserError(f"{self.name}: {kind} has no {dim} {label!r}; there is {there}")
        return dataset[variable].sel(labels)

    @property
    def flow_time(self) -> xr.DataArray:
        """Gradient-flow time along the time axis, in units of tau."""
        return self.trajectory["flow_time"]

    @cached_property
    def data(self) -> Data:
        """The task: the dataset of the cell, or what one pair of domains asks of a routing network.

        The pair is the first; a theory of modes takes all pairs to ask for the same ones.
        """
        if self.spec.network.by_domain:
            return Data(x=self.domains.inputs[0], y=self.domains.targets[0])
        return self.spec.dataset.load()

    @property
    def modes(self) -> Int[np.ndarray, " mode"]:
        """Mode numbers, from 1."""
        return np.arange(1, len(self.data.modes.s) + 1)

    @property
    def strength(self) -> xr.DataArray:
        """Singular value of each mode of the task, s."""
        return xr.DataArray(self.data.modes.s, dims="mode", coords={"mode": self.modes})

    @property
    def target(self) -> xr.DataArray:
        """Where each mode strength ends, s/d."""
        return self.strength / self.data.modes.d

    @property
    def contexts(self) -> Int[np.ndarray, " sample"]:
        """The context of each sample.

        Raises:
            UserError: the dataset gives none.
        """
        if self.data.contexts is None:
            raise UserError(f"dataset.name: {self.spec.dataset.name!r}: has no contexts")
        return self.data.contexts

    @property
    def gated(self) -> Gated:
        """The network, where it is of pathways side by side.

        Raises:
            UserError: it is not.
        """
        network = self.spec.network
        if not isinstance(network, Gated):
            raise UserError(f"network.name: {network.name!r}: this is for gated networks")
        return network

    @property
    def routing(self) -> Routing:
        """The network, where it routes between domains.

        Raises:
            UserError: it does not.
        """
        network = self.spec.network
        if not isinstance(network, Routing):
            raise UserError(f"network.name: {network.name!r}: this is for routing networks")
        return network

    @cached_property
    def domains(self) -> Domains:
        """The dataset of the cell by domain.

        Raises:
            UserError: it has no domains.
        """
        dataset = self.spec.dataset
        if not isinstance(dataset, DomainDataset):
            raise UserError(f"dataset.name: {dataset.name!r}: has no domains")
        return dataset.domains()

    @cached_property
    def image_domains(self) -> ImageDomains:
        """The dataset of the cell by domain, where it shows images: far fewer numbers.

        Raises:
            UserError: it shows none.
        """
        dataset = self.spec.dataset
        if not isinstance(dataset, ImageDomainDataset):
            raise UserError(
                f"dataset.name: {dataset.name!r}: this is for images by domain; use "
                "transformed_images"
            )
        return image_domains(dataset)  # pyright: ignore[reportArgumentType]

    @cached_property
    def trained_pairs(self) -> Bool[np.ndarray, "seed input_domain output_domain"]:
        """Which pairs of domains a routing network is trained on, by run seed.

        Raises:
            UserError: the network is another.
        """
        seeds = self.trajectory["seed"].values
        return np.stack([self.routing.mask(self.spec.dataset.count, int(seed)) for seed in seeds])

    def weights(self) -> list[np.ndarray]:
        """Weights at the snapshots, (init_scale, seed, snapshot, out, in), first layer first."""
        names = takewhile(self.trajectory.__contains__, (f"weight_{n}" for n in count(1)))
        return [self.trajectory[name].values for name in names]

    @property
    def receptive_fields(self) -> xr.DataArray:
        """Incoming weights of the units of the first hidden layer at the snapshots.

        Axes (init_scale, seed, snapshot, unit, input); of pathways, their maps, and of
        averaged pathways of one unit w_k, K times their maps.
        """
        if "pathway_maps" in self.trajectory:
            maps = self.trajectory["pathway_maps"].isel(output=0, drop=True)
            count = maps.sizes["pathway"] if self.spec.network.averaged else 1
            return maps.rename(pathway="unit") * count
        weights = self.trajectory["weight_1"]
        units = np.arange(1, weights.sizes["unit_1"] + 1)
        return weights.rename(unit_1="unit", unit_0="input").assign_coords(unit=units)


class Results(Mapping[str, CellResults]):
    """Cells by their identifiers `paper/experiment/label`, in the order given.

    Example:
        >>> import neuralrace as nr
        >>> results = nr.open_results("results")
        >>> chosen = results.select(paper="deep_linear", experiment="step_size")
        >>> len(chosen) == chosen.table["training.learning_rate"].nunique()
        True
        >>> sorted(cell.name for cell in results.cells("exact"))
        ['deep_linear/exact/hidden-16', 'deep_linear/exact/hidden-2']
    """

    def __init__(self, cells: Iterable[CellResults]):
        """No file is read."""
        self._cells = {cell.name: cell for cell in cells}

    def __repr__(self) -> str:
        """How many cells each experiment has."""
        return f"<Results: {len(self)} cells>\n{self._counts().to_string(index=False)}"

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        return f"Results: {len(self)} cells{self._counts().to_html(index=False)}"

    def _counts(self) -> pd.DataFrame:
        """Number of cells of each experiment; no file is read."""
        counts = self._places().groupby(IDENTIFIER[:2], sort=False).count()
        return counts.rename(columns={"cell": "cells"}).reset_index()

    def _places(self) -> pd.DataFrame:
        """Paper, experiment and cell of each identifier."""
        return pd.DataFrame([name.split("/") for name in self], columns=IDENTIFIER)

    def __getitem__(self, name: str) -> CellResults:
        return self._cells[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._cells)

    def __len__(self) -> int:
        return len(self._cells)

    def cells(self, experiment: str) -> list[CellResults]:
        """All cells of an experiment, whatever is swept.

        Raises:
            UserError: there is none.
        """
        found = [cell for name, cell in self.items() if name.split("/")[1] == experiment]
        if not found:
            raise UserError(
                f"experiments: no cell of {experiment!r}. Add it to experiments in config/, or "
                "leave the figures out that show it."
            )
        return found

    def cell(self, experiment: str) -> CellResults:
        """The only cell of an experiment.

        Raises:
            UserError: there is none, or more than one.
        """
        found = self.cells(experiment)
        if len(found) > 1:
            raise UserError(
                f"experiments: one cell of {experiment!r} is asked for, but it has {len(found)}. "
                "Move its sweep to an experiment of its own in config/."
            )
        return found[0]

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row for each cell.

        Columns: paper, experiment, cell, folder, and each entry of the specification in its last
        file under its dotted key (`dataset.name`, `network.activation`, `training.learning_rate`).
        Init scales and seeds are dimensions of the datasets.

        Raises:
            UserError: a missing or damaged file.
        """
        rows = []
        for cell in self.values():
            place = dict(zip(IDENTIFIER, cell.name.split("/"), strict=True))
            rows.append(place | {"folder": str(cell.folder)} | cell.entries(cell.kinds[-1]))
        return pd.DataFrame(rows)

    def select(self, **values: Any) -> "Results":
        """The cells whose columns have these values; write dots in keys as two underscores.

        `select(paper="deep_linear", network__activation="linear")`. No file is read to select by
        paper, experiment and cell.

        Args:
            **values: for each column of `table`, the value that it must have.

        Raises:
            UserError: an unknown column, or a value that no cell has.
        """
        if not len(self):
            return self
        wanted = {key.replace("__", "."): _as_in_json(value) for key, value in values.items()}
        table = self._places() if wanted.keys() <= set(IDENTIFIER) else self.table
        kept = np.ones(len(self), dtype=bool)
        for key, value in wanted.items():
            if key not in table:
                raise UserError(
                    f"{key!r} is no column; {did_you_mean(key, table.columns)}there are "
                    f"{', '.join(table.columns)}"
                )
            same = np.array([(entry == value) is True for entry in table[key]])
            if not same.any():
                known = list(dict.fromkeys(map(str, table[key])))
                raise UserError(
                    f"{key}: {value!r}: no cell has it; {did_you_mean(str(value), known)}there is "
                    f"{shorten(', '.join(known))}"
                )
            kept &= same
        chosen = Results(cell for cell, keep in zip(self.values(), kept, strict=True) if keep)
        if "table" in vars(self):
            chosen.table = self.table.loc[kept].reset_index(drop=True)
        return chosen


def _as_in_json(value: Any) -> Any:
    """A value as a specification has it: tuples and arrays are lists."""
    value = value.tolist() if hasattr(value, "tolist") else value
    return list(value) if isinstance(value, tuple) else value


def cells_of(tree: xr.DataTree) -> list[CellResults]:
    """The cells of a tree that `simulate` or `open_tree` gives; arrays are not read.

    Raises:
        UserError: it holds none.
    """
    cells = []
    for node in tree.subtree:
        files: dict[str, Any] = {
            kind: node[kind].to_dataset() for kind in REGISTRIES if kind in node.children
        }
        if files and all("spec" in file.attrs for file in files.values()):
            attrs = node.attrs | next(iter(files.values())).attrs
            name = named({str(key): value for key, value in attrs.items()})
            cells.append(CellResults(name, Path(name), **files))
    if not cells:
        raise UserError(
            f"the tree {tree.name or tree.path!r} holds no cell; give one that simulate or "
            "open_tree gives"
        )
    return cells


def open_results(
    folder: str | Path = "results",
    cell_ids: Iterable[str] | None = None,
    variant: str = "",
    expected: Mapping[str, Mapping[str, str]] | None = None,
) -> Results:
    """The cells of a results folder; their files are read when they are asked for.

    Args:
        folder: holds `<paper>/<experiment>/<label>/{trajectory,theory,metrics}.nc`.
        cell_ids: which, `paper/experiment/label`, in this order; all that have files when absent.
        variant: which variant of them, in `<paper>/<experiment>/<variant>/<label>`; the cells
            themselves when absent.
        expected: by cell, digest of the specification that each of its files must have; any when
            absent.

    Raises:
        UserError: there are none, or a folder cannot be read.

    Example:
        >>> import neuralrace as nr
        >>> results = nr.open_results("results")
        >>> "deep_linear/exact/hidden-16" in results
        True
        >>> results["deep_linear/exact/hidden-16"].metrics.attrs["experiment"]
        'exact'
    """
    if not isinstance(folder, str | Path):
        raise UserError(f"folder: {folder!r}: give the path of a results folder")
    root = Path(folder)
    if cell_ids is None:
        # robustness runs and smoke runs lie deeper
        places = [root]
        for _ in IDENTIFIER:
            places = [inside for folder in places for inside in _folders(folder)]
        found = [each for each in places if any(path.suffix == ".nc" for path in _inside(each))]
        if not found:
            raise UserError(f"{folder}: no results found. Run `snakemake --cores all figures`.")
        cell_ids = [path.relative_to(root).as_posix() for path in found]
    try:
        names: list[Any] = [cell_ids] if isinstance(cell_ids, str) else list(cell_ids)
    except TypeError:
        names = [cell_ids]
    for name in names:
        if not isinstance(name, str) or name.count("/") != len(IDENTIFIER) - 1:
            raise UserError(f"cell_ids: {name!r}: give identifiers paper/experiment/label")
    parted = ((name, *name.rpartition("/")) for name in names)
    return Results(
        CellResults(name, root / experiment / variant / label, expected=(expected or {}).get(name))
        for name, experiment, _, label in parted
    )


def _folders(folder: Path) -> list[Path]:
    """The folders in a folder, sorted; none where it is not there."""
    return [path for path in _inside(folder) if path.is_dir()]


def _inside(folder: Path) -> list[Path]:
    """What is in a folder, sorted; to be asked, as `glob` passes over what may not be read.

    Raises:
        UserError: it cannot be read.
    """
    try:
        return sorted(folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        raise UserError(
            f"{folder}: the folder cannot be read ({error.strerror}); check its permissions"
        ) from error
