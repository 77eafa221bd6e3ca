"""The notebooks of examples/ run, label their plots, and are stored without what they showed."""

import matplotlib.pyplot as plt
import nbformat
import pytest

from notebooks import EXAMPLES, run, unlabelled

NOTEBOOKS = [path.stem for path in sorted(EXAMPLES.glob("*.ipynb"))]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_are_stored_without_output(name):
    notebook = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    for cell in notebook.cells:
        assert cell.id
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


def test_own_data(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    run("own_data")
    assert "the same losses: True" in capsys.readouterr().out
    assert [path.name for path in tmp_path.rglob("mine.yaml")] == ["mine.yaml"]
    assert unlabelled() == []
    plt.close("all")


def test_own_network(capsys):
    names = run("own_network")
    assert names["gap"] < 0.01
    assert float(names["share"].sel(edge="eye->hidden", mode=1)) > 2.9
    assert names["reln"].output_error.max() < 0.05
    assert unlabelled() == []
    plt.close("all")
