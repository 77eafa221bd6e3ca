"""Random configurations: they are planned, or refused with a message."""

import json
from pathlib import Path

import yaml
from hypothesis import strategies as st

from neuralrace.errors import UserError
from neuralrace.workflow.study import Study

EXPERIMENT = {
    "dataset": {"name": "modes", "singular_values": [2.0, 1.0], "inputs": 3, "outputs": 2},
    "network": {"name": "layered", "hidden": [2], "activation": "linear", "bias": False},
    "init": {"name": "normal"},
    "init_scales": [0.1],
    "seeds": 2,
    "first_seed": 0,
    "training": {"learning_rate": 0.02, "steps": 40, "optimiser": {"name": "sgd"}},
    "record": {"every": 10, "snapshots": 1, "observables": ["mode_strength"]},
    "precision": "float64",
    "solutions": ["aligned_modes"],
    "candidates": {},
    "metrics": ["learning_times"],
    "sweep": {"training.learning_rate": [0.02, 0.01], "seeds, first_seed": [[1, 2]]},
}
WHOLE = {
    "results": "results",
    "checkpoint_seconds": 300,
    "gpus": 0,
    "memory_mb": 4000,
    "only": ["mine"],
    "experiments": {"mine": {"first": EXPERIMENT}},
}
TEXT = yaml.safe_dump(WHOLE)
BITS = (
    "*a", "&a ", "<<: *a", "&a {a: 1}", "!!python/name:os.system", "!!int ", "!!str ", "!!set {a}",
    "1:30", ".nan", ".inf", "-.inf", "1e999", "-1", "0", "0x" + "f" * 200, "9" * 400, "~", "true",
    "2024-01-01", "yes", "- ", "{", "}", "[", "]", ",", ": ", "? ", "| ", "> ", '"', "'", "#", "%",
    "---", "...", "%YAML 1.1\n---\n", "\n", "\t", "\0", "\x85", "\ufeff", "\u2028", "\U0001f600",
    '"\\ud800"', "__use_yte__: true\n", "{} ", "[] ", "a: ", "results: /", "name: ", "\n  ", "*",
)  # fmt: skip
"""Pieces of text with a meaning in YAML."""


def spots(value, path=()):
    """Paths of all values in a configuration."""
    yield path
    inside = value.items() if isinstance(value, dict) else ()
    inside = enumerate(value) if isinstance(value, list) else inside
    for key, inner in inside:
        yield from spots(inner, (*path, key))


SPOTS = list(spots(WHOLE))
words = st.sampled_from(
    sorted({str(key) for path in SPOTS for key in path} | {"modes", "relu", "__use_yte__", "<<"})
)
keys = st.one_of(
    words, st.text(max_size=5), st.integers(), st.booleans(), st.none(), st.floats(), st.dates()
)
leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(-(10**40), 10**40), st.floats(), words,
    st.text(max_size=20), st.dates(), st.sampled_from(["", "a" * 400, "../..", "{x}", "a*", "\n"]),
)  # fmt: skip
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(keys, inner, max_size=5)
        | st.lists(inner, max_size=2).map(lambda few: few * 9)
    ),
    max_leaves=20,
)


def placed(path, value):
    """The configuration with another value at a path."""
    if not path:
        return value
    whole = json.loads(json.dumps(WHOLE))
    node = whole
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return whole


def damaged(edits):
    """The text with pieces inserted, or in place of other text."""
    text = TEXT
    for place, bit, length in edits:
        start = place % (len(text) + 1)
        text = text[:start] + bit + text[start + length :]
    return text.encode("utf-8", "surrogatepass")


contents = st.one_of(
    st.binary(max_size=300),
    st.lists(st.sampled_from(BITS) | words, max_size=40).map(lambda bits: "".join(bits).encode()),
    st.lists(
        st.tuples(st.integers(0, 10**4), st.sampled_from(BITS), st.sampled_from([0, 0, 1, 5, 100])),
        min_size=1,
        max_size=4,
    ).map(damaged),
    st.builds(placed, st.sampled_from(SPOTS), values).map(lambda c: yaml.safe_dump(c).encode()),
    st.builds(placed, st.sampled_from(SPOTS), keys.map(lambda key: {key: 1})).map(
        lambda content: yaml.safe_dump(content).encode()
    ),
)  # fmt: skip
"""Random bytes, pieces of YAML, and configurations with random pieces or values inside."""


def outcome(content: bytes) -> str:
    """The outcome of a configuration in the current folder: its cells, or the message."""
    Path("odd.yaml").write_bytes(content)
    try:
        study = Study({"settings": "odd.yaml"})
        return " ".join(["planned", *study.metrics_files, *study.fingerprints])
    except UserError as error:
        message = str(error)
    assert message.startswith("odd.yaml: ")
    assert len(message) < 20_000
    return message
