"""The notebook that analyses all results runs on small cells."""

import json

import matplotlib.pyplot as plt
import pytest

from notebooks import run, unlabelled


@pytest.fixture
def judged(results_root, tmp_path, monkeypatch):
    """A folder with small results and two claims, one of which fails."""
    folder = tmp_path / "results"
    folder.mkdir()
    for paper in results_root.iterdir():
        (folder / paper.name).symlink_to(paper)
    claim = {
        "paper": "deep_linear", "kind": "equality", "statement": "s", "locator": "l", "quote": "q",
        "title": "t", "authors": "a", "sentence": 1, "status": "reproduced", "verdict": "holds",
        "source_setup": {"locator": "l", "printed": {}},
        "expected": 1.0, "tolerance": 0.1, "measured": 1.0, "interval": [0.95, 1.05], "seeds": 3,
        "metrics": {"loss_error_sup": ["deep_linear/staircase/main"]},
    }  # fmt: skip
    failed = {"status": "not reproduced", "verdict": "contradicted", "interval": [1.35, 1.45]}
    claims = [claim | {"id": "near"}, claim | failed | {"id": "far"}]
    (folder / "claims.json").write_text(json.dumps(claims))
    monkeypatch.chdir(tmp_path)


def test_meta_analysis(judged, capsys):
    names = run("meta_analysis")
    assert names["claims"].set_index("claim")["margin"].round(6).to_dict() == {
        "near": 0.5,
        "far": -3.0,
    }
    assert {"deep_linear", "neural_race"} <= set(names["errors"]["paper"])
    assert {"routing", "transformed_images"} <= set(names["transfer"]["dataset.name"])
    assert "1 of 2 claims with a tolerance hold" in capsys.readouterr().out
    assert len(plt.get_fignums()) == 4
    assert unlabelled() == []
    plt.close("all")
