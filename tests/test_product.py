"""What is made from result files is made from what was planned, or not at all."""

import pytest

from neuralrace import product as products
from neuralrace import provenance
from neuralrace.errors import UserError
from neuralrace.product import Product
from neuralrace.provenance import code_sha256, refuse_edited
from neuralrace.seal import seal, sha256

NAME = "paper/experiment/main/metrics.nc"


def write(path, content, made_from):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    seal(path, sha256(path), made_from)


@pytest.fixture
def picture(tmp_path):
    """A picture as it is planned; what it is drawn from is there."""
    write(tmp_path / NAME, b"numbers", "key")
    return Product(
        seal=str(tmp_path / "figures/paper/one.sha256"),
        root=str(tmp_path),
        inputs={NAME: "key"},
        stage="draw",
        code=code_sha256("draw"),
        said=("caption",),
    )


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "figures/paper/one.png"
    path.parent.mkdir(parents=True)
    return path


def make(planned, file, content=b"dots", meanwhile=lambda: None):
    with planned.making([str(file)]):
        file.write_bytes(content)
        meanwhile()


def test_it_is_current_once_it_was_made(picture, file):
    assert not picture.current
    make(picture, file)
    assert picture.current
    assert Product.model_validate_json(picture.canonical()).current


@pytest.mark.parametrize(
    "change", [{"said": ("another caption",)}, {"code": "0" * 64}, {"inputs": {NAME: "other"}}]
)
def test_another_plan_is_not_what_was_made(picture, file, change):
    make(picture, file)
    assert not picture.model_copy(update=change).current


@pytest.mark.parametrize("content", [b"other dots", None])
def test_a_picture_that_was_changed_is_not_current(picture, file, content):
    make(picture, file)
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    assert not picture.current


def test_other_numbers_by_the_same_key_are_others(picture, file, tmp_path):
    make(picture, file)
    write(tmp_path / NAME, b"numbers of another machine", "key")
    assert not picture.current


def test_what_is_not_there_as_planned_is_not_drawn(picture, file, tmp_path):
    write(tmp_path / NAME, b"numbers", "of other code")
    with pytest.raises(UserError, match=f"{NAME}: was not made from the present configuration"):
        make(picture, file)
    assert not file.exists()


def test_what_changes_meanwhile_is_not_sealed(picture, file, tmp_path):
    def change():
        write(tmp_path / NAME, b"others", "key")

    with pytest.raises(UserError, match="files changed while they were read"):
        make(picture, file, meanwhile=change)
    assert not picture.current


def test_other_code_than_was_planned_draws_nothing(picture, file):
    with pytest.raises(UserError, match="edited after this run was planned"):
        make(picture.model_copy(update={"code": "0" * 64}), file)
    assert not file.exists()


def test_code_that_is_edited_and_taken_back_is_refused(picture, file, tmp_path, monkeypatch):
    source = tmp_path / "module.py"
    source.write_text("TRUE = 1\n")
    monkeypatch.setattr(provenance, "READ", {source: provenance._state(source)})
    refuse_edited()

    def edit():
        source.write_text("TRUE = 2\n")
        source.write_text("TRUE = 1\n")

    with pytest.raises(UserError, match=r"module\.py: was edited while this job ran"):
        make(picture, file, meanwhile=edit)
    source.unlink()
    with pytest.raises(UserError, match=r"module\.py: was edited"):
        refuse_edited()
    assert products.refuse_edited is refuse_edited
