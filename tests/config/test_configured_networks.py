"""Networks of the papers, as they are configured."""

import yaml

from builders import REPOSITORY
from neuralrace.config.load import read_plan


def test_gated_network_of_two_hidden_layers_has_gates_at_the_second_only():
    """Jarvis et al., sec. 6: the first layer is linear, and shared; pathways part behind it.

    Context pathways do not receive the context (appendix F).
    """
    text = (REPOSITORY / "config/make_haste/experiments.yaml").read_text()
    cells = read_plan(yaml.safe_load(text), {}).cells
    relu, gated = (cells[f"make_haste/{name}/main"] for name in ("two_hidden", "two_hidden_gated"))
    wiring = gated.network.wiring(gated.dataset.load())
    nodes, pathways = wiring.architecture.nodes, wiring.architecture.pathways
    *of_objects, of_contexts = pathways
    assert {pathway.nodes[:2] for pathway in of_objects} == {("object", "first")}
    assert of_contexts.nodes[:3] == ("context", "first_of_context", "common")
    second = [pathway.nodes[2] for pathway in of_objects]
    assert len({*second}) == len(of_objects) == 4
    firsts = [nodes[name] for name in ("first", "first_of_context")]
    assert firsts == [relu.network.hidden[0]] * 2
    assert [nodes[name] for name in second] == [100] * 4
    assert set(wiring.gates) <= {*second}
    opened = wiring.pathway_gates.reshape(5, 3, -1)
    assert (opened == opened[..., :1]).all()
    assert opened[..., 0].tolist() == [[1, 1, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1]]
    assert relu.candidates["two"] == gated.network
    assert relu.candidates["two_shown"] == cells["make_haste/two_hidden_shown/main"].network
    for key in ("dataset", "init", "init_scales", "seeds", "first_seed", "precision"):
        assert getattr(relu, key) == getattr(gated, key)
    assert relu.training.learning_rate == gated.training.learning_rate
    assert relu.training.loss == gated.training.loss
