"""Results of cells: `open_results` reads a results folder, and each cell is a `CellResults`.

Metrics take one `CellResults`, figures and claims take all of a folder as `Results`.
"""

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import count, islice, takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool, Int
from pydantic import ValidationError

from neuralrace.config.cell import Cell, flatten_keys
from neuralrace.config.parts import PARTS
from neuralrace.config.sweep import MOST_CELLS
from neuralrace.config.variables import REGISTRIES, FileKind, why_absent
from neuralrace.datasets import Data, DomainDataset, Domains
from neuralrace.datasets.given import Given, Labelled, NotGivenError, give_again
from neuralrace.datasets.image_domains import (
    ImageDomainDataset,
    ImageDomains,
    image_domains,
)
from neuralrace.datasets.user_file import UserFile
from neuralrace.errors import UserError, counted, did_you_mean, shorten
from neuralrace.extensions.model import problem_of
from neuralrace.networks.gated import Gated
from neuralrace.networks.routing import Routing
from neuralrace.results.checksums import to_recompute
from neuralrace.results.files import checked, open_lazily, read_attributes, read_result

IDENTIFIER = ["paper", "experiment", "cell"]
"""Parts of a cell's identifier."""
DATA = "data"
"""Child of a tree of `simulate` that has the arrays given in Python."""
MOST_ROWS = 16
"""Rows of the table that results are printed as."""


def _specification(text: str, file: Any) -> Cell:
    """The specification in a result file or tree.

    Raises:
        UserError: it is of another version, or needs arrays that are not there.
    """
    try:
        return Cell.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        reason = f"{'.'.join(map(str, first['loc']))}: {problem_of(first)}"
        if isinstance(first.get("ctx", {}).get("error"), NotGivenError):
            raise UserError(
                f"lacks its arrays, which are the child {DATA!r} of the tree of `simulate`",
                file=file,
                remedy="save and open that tree as a whole",
            ) from error
        raise UserError(
            f"its specification does not fit this version ({reason})",
            file=file,
            remedy="run the workflow again, or read it by the version that made it",
        ) from error


def cell_name(attrs: Mapping[str, Any]) -> str:
    """The identifier `paper/experiment/label` in the attributes of a file."""
    return "/".join(str(attrs.get(part)) for part in IDENTIFIER)


def figures_folder(folder: Path) -> Path:
    """The folder of the figures of a results folder: `figures` inside it, or else beside it."""
    within = folder / "figures"
    return within if within.is_dir() else folder.parent / "figures"


class CellResults:
    """One cell: its specification, its task and its result files.

    Args:
        name: identifier `paper/experiment/label`.
        folder: folder of `{trajectory,theory,metrics}.nc`; each is read at its first use.
        spec: specification; read from the files when absent.
        trajectory: a dataset to use in place of the file.
        theory: a dataset to use in place of the file.
        metrics: a dataset to use in place of the file.
        expected: digest that the specification of each file must have; any when absent.
        variables: names of the variables to read of each file, beside coordinates; all when absent.

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
        variables: Mapping[str, Collection[str]] | None = None,
    ):
        self.name = name
        self.folder = folder
        self.expected = expected or {}
        self.variables = variables
        known = {"spec": spec, "trajectory": trajectory, "theory": theory, "metrics": metrics}
        # cached properties keep their values in the same dictionary
        vars(self).update({key: value for key, value in known.items() if value is not None})

    def __repr__(self) -> str:
        return f"<CellResults {self.name}: {', '.join(self._existing()) or 'no result files'}>"

    def path(self, kind: FileKind) -> Path:
        """Path of the file of a kind, whether or not it exists."""
        return self.folder / f"{kind}.nc"

    def _existing(self) -> list[FileKind]:
        return [kind for kind in REGISTRIES if kind in vars(self) or self.path(kind).is_file()]

    @property
    def kinds(self) -> list[FileKind]:
        """Kinds of the existing files, or datasets in their place: trajectory, theory, metrics.

        Raises:
            UserError: the cell has no result file.
        """
        existing = self._existing()
        if not existing:
            remedy = "run the workflow to make them"
            raise UserError("no result files", file=self.name, remedy=remedy)
        return existing

    @cached_property
    def spec(self) -> Cell:
        """The specification in the first file; that of a trajectory lacks theory and metrics.

        Raises:
            UserError: the file is missing, damaged, or of another version.
        """
        kind = self.kinds[0]
        return _specification(getattr(self, kind).attrs["spec"], self.path(kind))

    def entries(self, kind: FileKind) -> dict[str, Any]:
        """The specification in a file, as a dictionary with dotted keys; no array is read.

        Raises:
            UserError: the file is missing, damaged, or of another cell.
        """
        return flatten_keys(json.loads(self.attributes(kind)["spec"]))

    def attributes(self, kind: FileKind) -> dict[str, Any]:
        """The attributes of a file; no array is read.

        Raises:
            UserError: the file is missing, damaged, or of another cell or specification.
        """
        loaded: xr.Dataset | None = vars(self).get(kind)
        if loaded is not None:
            return loaded.attrs
        path = self.path(kind)
        attrs = read_attributes(path, kind)
        self._check_identity(attrs, kind)
        return attrs

    @cached_property
    def trajectory(self) -> xr.Dataset:
        """Variables recorded in training."""
        return self._read("trajectory")

    @cached_property
    def theory(self) -> xr.Dataset:
        """Theory of the same runs; an empty dataset if no solution was configured."""
        return self._read("theory") if self.path("theory").is_file() else xr.Dataset()

    @cached_property
    def metrics(self) -> xr.Dataset:
        """Metrics of trajectory and theory."""
        return self._read("metrics")

    def dataset(self, kind: FileKind, lazily: bool = False) -> xr.Dataset:
        """The dataset of a kind, which the cell does not keep if it is not in memory yet.

        Args:
            kind: kind of file.
            lazily: whether arrays of the file are read at each use.

        Raises:
            UserError: the file is missing, damaged, or of another cell or specification.
        """
        if kind in vars(self):
            return vars(self)[kind]
        if not lazily:
            return self._read(kind)
        dataset = open_lazily(checked(self.path(kind)), kind)
        self._check_identity(dataset.attrs, kind)
        return dataset

    def _read(self, kind: FileKind) -> xr.Dataset:
        names = None if self.variables is None else self.variables.get(kind, ())
        dataset = read_result(self.path(kind), kind, names)
        self._check_identity(dataset.attrs, kind)
        return dataset

    def _check_identity(self, attrs: Mapping[str, Any], kind: FileKind) -> None:
        """Raises UserError if a file belongs to another cell or specification."""
        if (name := cell_name(attrs)) != self.name:
            problem = f"is the {kind} of {name}, not of {self.name}"
            raise to_recompute(self.path(kind), problem, "put it where it belongs, or ")
        digest = attrs["spec_sha256"]
        if self.expected.get(kind, digest) != digest:
            problem = "was computed from another specification than the configuration has now"
            raise to_recompute(self.path(kind), problem)

    def get(self, kind: FileKind, variable: str, **labels: str) -> xr.DataArray:
        """A variable of one of the files, selected by labels such as `solution="exact"`.

        Raises:
            UserError: the file has no such variable or label.
        """
        dataset: xr.Dataset = getattr(self, kind)
        if variable not in dataset:
            again = "run it again" if self.variables is None else "add it to `reads` of the figure"
            remedy = why_absent(self.spec, kind, variable) or again
            raise UserError(f"{kind} has no {variable!r}", file=self.name, remedy=remedy)
        for dim, label in labels.items():
            if label not in dataset[dim]:
                known = ", ".join(map(str, dataset[dim].values))
                raise UserError(
                    f"{kind} has no {dim} {label!r}", file=self.name, remedy=f"there is {known}"
                )
        return dataset[variable].sel(labels)

    @property
    def flow_time(self) -> xr.DataArray:
        """Gradient-flow time along the time axis, in units of tau."""
        return self.trajectory["flow_time"]

    @cached_property
    def data(self) -> Data:
        """The task: the dataset of the cell, or of the first pair of domains of a routing network.

        Theories of modes assume that all pairs of domains have the same task.
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
        """Mode strengths at convergence, s/d."""
        return self.strength / self.data.modes.d

    @property
    def contexts(self) -> Int[np.ndarray, " sample"]:
        """The context of each sample.

        Raises:
            UserError: the dataset has no contexts.
        """
        if self.data.contexts is None:
            raise UserError("has no contexts", key="dataset.name", value=self.spec.dataset.name)
        return self.data.contexts

    @property
    def gated(self) -> Gated:
        """The network of a cell with parallel gated pathways.

        Raises:
            UserError: the cell has another kind of network.
        """
        network = self.spec.network
        if not isinstance(network, Gated):
            raise UserError("this is for gated networks", key="network.name", value=network.name)
        return network

    @property
    def routing(self) -> Routing:
        """The network of a cell with routing between domains.

        Raises:
            UserError: the cell has another kind of network.
        """
        network = self.spec.network
        if not isinstance(network, Routing):
            raise UserError("this is for routing networks", key="network.name", value=network.name)
        return network

    @cached_property
    def domains(self) -> Domains:
        """The dataset of the cell by domain.

        Raises:
            UserError: the dataset has no domains.
        """
        dataset = self.spec.dataset
        if not isinstance(dataset, DomainDataset):
            raise UserError("has no domains", key="dataset.name", value=dataset.name)
        return dataset.domains()

    @cached_property
    def image_domains(self) -> ImageDomains:
        """Images of the dataset by domain, which are far fewer numbers than `domains`.

        Raises:
            UserError: the dataset has no images by domain.
        """
        dataset = self.spec.dataset
        if not isinstance(dataset, ImageDomainDataset):
            raise UserError(
                "this is for images by domain",
                key="dataset.name",
                value=dataset.name,
                remedy="use transformed_images",
            )
        return image_domains(dataset)  # pyright: ignore[reportArgumentType]

    @cached_property
    def trained_pairs(self) -> Bool[np.ndarray, "seed input_domain output_domain"]:
        """Which pairs of domains a routing network is trained on, by run seed.

        Raises:
            UserError: the cell has another kind of network.
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

        Axes (init_scale, seed, snapshot, unit, input). For pathways these are their maps. For
        averaged pathways of one unit w_k they are K times their maps.
        """
        if "pathway_maps" in self.trajectory:
            maps = self.trajectory["pathway_maps"].isel(output=0, drop=True)
            count = maps.sizes["pathway"] if self.spec.network.averages_units else 1
            return maps.rename(pathway="unit") * count
        weights = self.trajectory["weight_1"]
        units = np.arange(1, weights.sizes["unit_1"] + 1)
        return weights.rename(unit_1="unit", unit_0="input").assign_coords(unit=units)


class UnknownCellError(UserError, KeyError):
    """A name that no cell, experiment or paper has; a `KeyError`, which a mapping raises."""


class Results(Mapping[str, CellResults]):
    """All cells of a results folder, by identifier `paper/experiment/label`.

    `results["paper/experiment"]` has the cells of an experiment, `results["paper"]` those of a
    paper, both as `Results`.

    Example:
        >>> import neuralrace as nr
        >>> results = nr.open_results("results")
        >>> chosen = results.select(paper="deep_linear", experiment="step_size")
        >>> len(chosen) == chosen.table["training.learning_rate"].nunique()
        True
        >>> list(results["deep_linear/exact"])
        ['deep_linear/exact/hidden-16', 'deep_linear/exact/hidden-2']
    """

    def __init__(self, cells: Iterable[CellResults]):
        self._cells = {cell.name: cell for cell in cells}

    def __repr__(self) -> str:
        counts = self._counts().to_string(index=False, max_rows=MOST_ROWS)
        return f"<Results: {counted(len(self), 'cell')}>\n{counts}"

    def _repr_html_(self) -> str:
        counts = self._counts().to_html(index=False, max_rows=MOST_ROWS)
        return f"Results: {counted(len(self), 'cell')}{counts}"

    def _counts(self) -> pd.DataFrame:
        """Cells of each experiment, or of each paper if there are many; no file is read."""
        names = self._identifiers()
        counts = names.groupby(IDENTIFIER[:2], sort=False).count().reset_index()
        counts = counts.rename(columns={"cell": "cells"})
        if len(counts) <= MOST_ROWS:
            return counts
        papers = counts.groupby("paper", sort=False)
        return papers.agg(experiments=("cells", "size"), cells=("cells", "sum")).reset_index()

    def _identifiers(self) -> pd.DataFrame:
        return pd.DataFrame([name.split("/") for name in self], columns=IDENTIFIER)

    def __getitem__(self, name: str) -> Any:
        """A cell `paper/experiment/label`; the cells of `paper/experiment` or `paper` as Results.

        Raises:
            UnknownCellError: there is none.
        """
        if name in self._cells:
            return self._cells[name]
        above = name.strip("/")
        chosen = Results(cell for each, cell in self.items() if each.startswith(f"{above}/"))
        if len(chosen) and above:
            return chosen
        levels = (each.split("/")[: above.count("/") + 1] for each in self)
        known = dict.fromkeys("/".join(level) for level in levels)
        remedy = f"{did_you_mean(above, known)}list(results) has the names of all"
        problem = "is no cell (paper/experiment/label), experiment or paper"
        raise UnknownCellError(problem, key="results", value=name, remedy=remedy)

    def __iter__(self) -> Iterator[str]:
        return iter(self._cells)

    def __len__(self) -> int:
        return len(self._cells)

    def cells(self, experiment: str) -> list[CellResults]:
        """All cells of an experiment.

        Raises:
            UserError: there is none.
        """
        cells = [cell for name, cell in self.items() if name.split("/")[1] == experiment]
        if not cells:
            raise UserError(
                f"no cell of {experiment!r}",
                key="experiments",
                remedy="add it to experiments in config/, or leave out the figures that show it",
            )
        return cells

    def cell(self, experiment: str) -> CellResults:
        """The only cell of an experiment.

        Raises:
            UserError: there is none, or more than one.
        """
        cells = self.cells(experiment)
        if len(cells) > 1:
            raise UserError(
                f"{experiment!r} must have one cell here, but it has {len(cells)}",
                key="experiments",
                remedy="move its sweep to a separate experiment in config/",
            )
        return cells[0]

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row for each cell.

        Columns: paper, experiment, cell, folder, and each entry of the specification under its
        dotted key (`dataset.name`, `network.activation`, `training.learning_rate`). The
        specification is that of the last file. Init scales and seeds are dimensions of the
        datasets.

        Raises:
            UserError: a file is missing or damaged.
        """
        rows = []
        for cell in self.values():
            row = dict(zip(IDENTIFIER, cell.name.split("/"), strict=True))
            rows.append(row | {"folder": str(cell.folder)} | cell.entries(cell.kinds[-1]))
        return pd.DataFrame(rows)

    def select(self, **values: Any) -> "Results":
        """The cells with certain values in columns of `table`.

        A dot in a key is written as one or two underscores, or as a dot:
        `select(dataset_name="modes")`, `select(dataset__name="modes")` and
        `select(**{"dataset.name": "modes"})` are the same. No file is read to select by paper,
        experiment and cell.

        Args:
            **values: value of each column.

        Raises:
            UserError: an unknown column, a name that stands for several columns, or a value that no
                cell has.
        """
        if not len(self):
            return self
        table = self._identifiers() if values.keys() <= set(IDENTIFIER) else self.table
        kept = np.ones(len(self), dtype=bool)
        for name, given in values.items():
            key, value = _column(name, list(table.columns)), _as_in_json(given)
            same = np.array([(entry == value) is True for entry in table[key]])
            if not same.any():
                known = list(dict.fromkeys(map(str, table[key])))
                close = did_you_mean(str(value), known)
                raise UserError(
                    "no cell has it",
                    key=key,
                    value=value,
                    remedy=f"{close}there is {shorten(', '.join(known))}",
                )
            kept &= same
        chosen = Results(cell for cell, keep in zip(self.values(), kept, strict=True) if keep)
        if "table" in vars(self):
            chosen.table = self.table.loc[kept].reset_index(drop=True)
        return chosen


def _column(name: str, columns: Sequence[str]) -> str:
    """The column that an argument of `Results.select` means.

    Raises:
        UserError: there is none, or more than one.
    """
    for dotted in (name, name.replace("__", ".")):
        if dotted in columns:
            return dotted
    found = [column for column in columns if column.replace(".", "_") == name.replace("__", "_")]
    if len(found) == 1:
        return found[0]
    if found:
        remedy = f"write {' or '.join(each.replace('.', '__') for each in found)}"
        raise UserError("stands for several columns", key=name, remedy=remedy)
    key = name.replace("__", ".")
    # the last part of a key is what people remember
    near = [each for each in columns if each.rpartition(".")[2] == key.rpartition(".")[2]][:3]
    close = f"did you mean {' or '.join(near)}? " if near else did_you_mean(key, columns)
    raise UserError("is no column", key=key, remedy=f"{close}results.table.columns lists all")


def _as_in_json(value: Any) -> Any:
    """A value as in a specification: tuples and arrays become lists."""
    value = value.tolist() if hasattr(value, "tolist") else value
    return list(value) if isinstance(value, tuple) else value


def given_arrays(cell: Cell) -> xr.Dataset:
    """The arrays given in Python that a specification names, each with its checksum."""
    files = (each for each in (cell.dataset, cell.init) if isinstance(each, UserFile))
    return xr.Dataset(
        {
            name: (dims, array, {"checksum": file.given.checksum})
            for file in files
            if file.given is not None
            for name, (dims, array) in file.given.variables.items()
        }
    )


def _give_again(node: xr.DataTree) -> list[Given]:
    """The arrays of a cell, or those of its sweep; all are read at their first use.

    They can be found by their checksums as long as these are held.
    """
    above = (each[DATA].to_dataset() for each in (node, *node.parents) if DATA in each.children)
    arrays: dict[str, dict[str, xr.Variable]] = {}
    for name, variable in next(above, xr.Dataset()).variables.items():
        arrays.setdefault(variable.attrs["checksum"], {})[str(name)] = variable

    def reader(some: Mapping[str, xr.Variable]) -> Callable[[], Mapping[str, Labelled]]:
        return lambda: {
            name: (tuple(map(str, variable.dims)), variable.values)
            for name, variable in some.items()
        }

    return [give_again(checksum, reader(some)) for checksum, some in arrays.items()]


def cells_of(tree: xr.DataTree) -> list[CellResults]:
    """The cells in a tree of `simulate` or `open_tree`; no array is read.

    Raises:
        UserError: the tree holds no cell.
    """
    cells = []
    for node in tree.subtree:
        files: dict[str, Any] = {
            kind: node[kind].to_dataset() for kind in REGISTRIES if kind in node.children
        }
        whole = None
        if files and "spec" in node.attrs:  # of `simulate`: once for all datasets
            given = _give_again(node)  # held until the specification holds them
            whole = _specification(node.attrs["spec"], tree.name or node.path)
            del given
            for kind in REGISTRIES:
                if kind in files:
                    part = whole.only(PARTS[kind])
                    files[kind] = files[kind].assign_attrs(spec=part.canonical())
        if files and all("spec" in file.attrs for file in files.values()):
            attrs = node.attrs | next(iter(files.values())).attrs
            name = cell_name({str(key): value for key, value in attrs.items()})
            cells.append(CellResults(name, Path(name), whole, **files))
    if not cells:
        raise UserError(
            f"the tree {tree.name or tree.path!r} holds no cell",
            remedy="give a tree of simulate or open_tree",
        )
    return cells


def open_results(
    folder: str | Path = "results",
    cell_ids: Iterable[str] | None = None,
    variant: str = "",
    expected: Mapping[str, Mapping[str, str]] | None = None,
    variables: Mapping[str, Mapping[str, Collection[str]]] | None = None,
) -> Results:
    """Opens the cells of a results folder; their files are read at their first use.

    Args:
        folder: folder of `<paper>/<experiment>/<label>/{trajectory,theory,metrics}.nc`.
        cell_ids: identifiers `paper/experiment/label` of cells, in their order; all cells with
            files when absent.
        variant: name of a variant, to open `<paper>/<experiment>/<variant>/<label>`; the
            cells themselves when absent.
        expected: digest that the specification of each file must have, by cell and kind of file;
            any when absent.
        variables: names of the variables to read of each file, beside coordinates, by cell and kind
            of file; all when absent.

    Raises:
        UserError: there are no results, or a folder cannot be read.

    Example:
        >>> import neuralrace as nr
        >>> results = nr.open_results("results")
        >>> "deep_linear/exact/hidden-16" in results
        True
        >>> results["deep_linear/exact/hidden-16"].metrics.attrs["experiment"]
        'exact'
    """
    root = folder_path(folder)
    if cell_ids is None:
        cell_ids = _found_cells(root)
        if not cell_ids:
            raise UserError(
                "no results found",
                file=folder,
                remedy="run `neuralrace run deep_linear/staircase`, or name another folder",
            )
    try:
        names: list[Any] = [cell_ids] if isinstance(cell_ids, str) else list(cell_ids)
    except TypeError:
        names = [cell_ids]
    for name in names:
        if not isinstance(name, str) or name.count("/") != len(IDENTIFIER) - 1:
            raise UserError("give identifiers paper/experiment/label", key="cell_ids", value=name)
    parted = ((name, *name.rpartition("/")) for name in names)
    return Results(
        CellResults(
            name,
            root / experiment / variant / label,
            expected=(expected or {}).get(name),
            variables=(variables or {}).get(name),
        )
        for name, experiment, _, label in parted
    )


def folder_path(folder: str | os.PathLike[str]) -> Path:
    """The path of a results folder, in which `~` stands for the user's home folder.

    Raises:
        UserError: the value is no path.
    """
    name = os.fspath(folder) if isinstance(folder, str | os.PathLike) else None
    if not isinstance(name, str) or "\0" in name:
        raise UserError("give the path of a results folder", key="folder", value=folder)
    return Path(os.path.expanduser(name))


def _found_cells(root: Path) -> list[str]:
    """Identifiers of the cells that have files in a results folder, sorted.

    Raises:
        UserError: a folder cannot be read, or there are too many. (`Path.glob` would silently skip
            folders that cannot be read.)
    """
    try:
        folders = [root] if root.is_dir() else []
        # exactly three levels: the files of variants and smoke runs are deeper
        for _ in IDENTIFIER:
            inside = (path for each in folders for path in sorted(each.iterdir()) if path.is_dir())
            folders = list(islice(inside, MOST_CELLS + 1))
            if len(folders) > MOST_CELLS:
                problem = f"has more than {MOST_CELLS} folders in it"
                raise UserError(problem, file=root, remedy="name a results folder")
        cells = [each for each in folders if any(path.suffix == ".nc" for path in each.iterdir())]
    except OSError as error:
        raise UserError(
            f"the folder cannot be read ({error.strerror})",
            file=error.filename or root,
            remedy="check its permissions, or name another results folder",
        ) from error
    return [path.relative_to(root).as_posix() for path in cells]
