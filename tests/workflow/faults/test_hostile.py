"""Configurations that were written to do harm, or by mistake beyond all measure."""

import random
import resource
from functools import reduce

import pytest
import yaml
from hypothesis import HealthCheck, given, settings

from neuralrace.claims.spec import read_claims
from neuralrace.cli.main import main
from neuralrace.config.load import merge_configs, read_file, read_plan
from neuralrace.errors import UserError
from odd_configurations import contents, outcome

pytestmark = pytest.mark.faults
GROUP = "Configuration"
NOTHING = "correct the file: nothing ran"
BILLION = 10**9
CELL = {
    "dataset": {"name": "modes", "singular_values": [2.0, 1.0], "inputs": 3, "outputs": 2},
    "network": {"name": "layered", "hidden": [2]},
    "init": {"name": "normal"},
    "init_scales": [0.1],
    "seeds": 2,
    "training": {"learning_rate": 0.02, "steps": 400},
    "record": {"every": 10},
}


def doubled(entry, times=60):
    """Text of aliases, each of which stands for the one before twice."""
    lines = [f"x{n + 1}: &x{n + 1} " + entry.replace("*", f"*x{n}") for n in range(times)]
    return "\n".join(["x0: &x0 {a: 1}", *lines])


TEXTS = {
    "YAML that expands beyond the memory, by aliases, depth or length": [
        doubled("[*, *]"),
        doubled("{a: *, b: *}"),
        doubled("{<<: [*, *]}"),
        "[" * 100_000 + "]" * 100_000,
        "{a: " * 100_000 + "}" * 100_000,
        "\n".join(" " * n + "a:" for n in range(3000)),
        "a: &a [*a]",
        "a: &a {b: *a}",
        "a: [" + "1," * 300_000 + "1]",
        "a: 0x" + "f" * 10_000,
        "a: " + "9:" * 3000 + "9",
        "a: " + "b" * 10**6,
    ],
    "a configuration file that is not a valid YAML mapping": [
        "", "null", "- 1", "text", "experiments:", "experiments: 3", "experiments: {a: }",
        "experiments: {a: {b: }}", "experiments: {1: {}}", "experiments: {[1]: 2}",
        "experiments: [", "experiments: {a: {b: {}}}\nexperiments: {}", "a: 1\n---\nb: 2",
        "experiments: 2024-13-45", "experiments:\n\ta: 1", "experiments: \0", "experiments: *a",
        b"\xff\xfe\x00", b"experiments: {\xe4: 1}", "experiments: {}".encode("utf-16"),
        random.Random(0).randbytes(1000), "2024-01-01: 1", "1: 1",
    ],
}  # fmt: skip


def planned(path, **settings):
    """What is planned of a file laid over an experiment."""
    content = read_file(path)
    below = {"experiments": {"paper": {"one": CELL}}}
    return read_plan(reduce(merge_configs, [below, content, settings]), {str(path): content})


@pytest.mark.parametrize("kind", TEXTS)
def test_a_text_that_nobody_can_mean(kind, tmp_path, injecting):
    path = tmp_path / "mine.yaml"
    with injecting(kind, group=GROUP, recovers=NOTHING) as fault:
        for text in TEXTS[kind]:
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            with fault.injection(), pytest.raises(UserError) as caught:
                planned(path)
            assert str(caught.value).startswith(f"{path}: "), text[:40]
            assert len(str(caught.value)) < 1000
        fault.message = "mine.yaml: where: what it is; what to do"


def test_a_text_that_was_damaged(tmp_path, injecting, repeat):
    """A plan or one message, and never anything else."""
    text = yaml.safe_dump({"experiments": {"paper": {"one": CELL}}, "batch": ["seed"]}).encode()
    chance, path = random.Random(0), tmp_path / "mine.yaml"
    with injecting(
        "a configuration file is damaged (bits flipped, cut or extended)",
        group=GROUP,
        recovers=NOTHING,
        chance=True,
    ) as fault:
        for _ in range(20 * repeat):
            content = bytearray(text)
            for _ in range(chance.randint(1, 3)):
                content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
            path.write_bytes(content[: chance.randint(len(text) // 2, 2 * len(text))])
            with fault.injection():
                try:
                    told = "".join(read_plan(read_file(path), {}).cells)
                except UserError as error:
                    told = str(error)
            assert told
        fault.message = "mine.yaml: key: value: what is allowed"


ASKING = (
    "__use_yte__: true\nresults: \"?open('{mark}', 'w').name\"",
    "__use_yte__: true\n__definitions__:\n  - open('{mark}', 'w')",
    "__use_yte__: true\n__variables__:\n  x: \"?open('{mark}', 'w')\"",
    "'__use_yte__': yes\n\"?open('{mark}', 'w').name\": 1",
    "\"__use\\x5fyte__\": 1\n?if open('{mark}', 'w'):\n  results: a",
    "a: &a __use_yte__\n*a : true\nresults: \"?open('{mark}', 'w').name\"",
    "<<: {{__use_yte__: true}}\nresults: \"?open('{mark}', 'w').name\"",
)
"""Ways to have Snakemake's own reader run something."""
TAGS = (
    "results: !!python/object/apply:os.mkdir ['{mark}']",
    "results: !!python/object/new:os.mkdir ['{mark}']",
    "results: !!python/name:os.system",
    "results: !!python/module:antigravity",
    'results: \'{{{{open("{mark}", "w")}}}}\'',
)


def test_a_text_that_asks_for_code(workspace, monkeypatch, capsys, injecting):
    monkeypatch.chdir(workspace.path)
    mark = workspace.path / "mark"
    kind = "a configuration that asks to run code"
    with injecting(kind, group=GROUP, recovers=NOTHING) as fault:
        for text in (*ASKING, *TAGS):
            (workspace.path / "mine.yaml").write_text(text.format(mark=mark))
            with fault.injection():
                status = main(["run", "deep_linear/step_size", "-n", "--configfile", "mine.yaml"])
                fault.wrong += mark.exists()
            assert status == 1
            assert capsys.readouterr().err.startswith("error: mine.yaml: ")
            for how in ((), ("-n",)) if text in ASKING else (("-n",),):
                with fault.injection():
                    told = workspace.refusal("cells", *how, "--config", "settings=mine.yaml")
                    fault.wrong += mark.exists()
                assert told.startswith("mine.yaml: ")
        assert not (workspace.path / "results").exists()
        fault.message = "mine.yaml: __use_yte__: a configuration is data and runs no code"


def test_a_text_that_asks_for_code_by_the_flag_of_snakemake(workspace, injecting):
    """Snakemake runs it before there is a workflow, which says so and goes no further."""
    mark = workspace.path / "mark"
    kind = "a configuration that asks to run code, given by --configfile to Snakemake"
    with injecting(kind, group=GROUP, recovers="undo by hand what it ran") as fault:
        for text in ASKING:
            (workspace.path / "mine.yaml").write_text(text.format(mark=mark))
            with fault.injection():
                told = workspace.refusal("cells", "--configfile", "mine.yaml")
            assert mark.exists()
            mark.unlink()
            assert "mine.yaml: __use_yte__: a configuration is data and runs no code" in told
            assert "Snakemake has run them already" in told
            assert not (workspace.path / "results").exists()
        fault.message = "mine.yaml: __use_yte__: ... Snakemake has run them already"


def test_a_profile_that_asks_for_code(workspace, monkeypatch, capsys, injecting):
    """Also one that came with somebody's files, and that Snakemake would find by itself."""
    monkeypatch.chdir(workspace.path)
    mark = workspace.path / "mark"
    kind = "a profile that asks for code to be run"
    with injecting(kind, group=GROUP, recovers=NOTHING) as fault:
        for folder, how in (("mine", ("--profile", "mine")), ("profiles/default", ())):
            (workspace.path / folder).mkdir(exist_ok=True)
            for text in ASKING:
                (workspace.path / folder / "config.yaml").write_text(text.format(mark=mark))
                with fault.injection():
                    status = main(["run", "deep_linear/step_size", "-n", *how])
                    fault.wrong += mark.exists()
                assert status == 1
                assert capsys.readouterr().err.startswith(f"error: {folder}/config.yaml: __use_")
        fault.message = "mine/config.yaml: __use_yte__: a configuration is data and runs no code"


def test_a_text_that_nobody_can_mean_given_to_the_workflow(workspace, injecting, repeat):
    """Those of a sample: each start of Snakemake takes seconds."""
    texts = [text for kind in TEXTS.values() for text in kind]
    random.Random(0).shuffle(texts)
    kind = "invalid YAML, or YAML that expands beyond the memory, in a run"
    with injecting(kind, group=GROUP, recovers=NOTHING) as fault:
        for text in texts[: 4 * repeat]:
            path = workspace.path / "mine.yaml"
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            with fault.injection():
                told = workspace.refusal("cells", "--config", "settings=mine.yaml")
            assert told.startswith("mine.yaml: ")
            assert len(told) < 1000
        fault.message = "mine.yaml: where: what it is; what to do"


def test_any_configuration(tmp_path, monkeypatch, injecting, repeat):
    """Random bytes, pieces of YAML, odd values in odd places: planned, or told in a message."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config/mine").mkdir(parents=True)
    (tmp_path / "config/mine/experiments.yaml").write_text("experiments: {}")
    kind, seconds, before = "configurations at random", 12 * repeat, memory()
    with injecting(kind, group=GROUP, recovers=NOTHING, chance=True) as fault:

        @settings(
            max_examples=200, database=None, derandomize=False,
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(content=contents)
        def tried(content):
            with fault.injection():
                assert outcome(content)

        while sum(fault.seconds) < seconds:
            tried()
        assert memory() - before < 1e9
        fault.message = "mine.yaml: where: what it is; what to do"


def memory():
    """Bytes of memory that this process has had at most."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


SIZES = {
    "seeds": BILLION,
    "init_scales": [0.1 + 1e-9 * n for n in range(10**5)],
    "network.hidden": [BILLION],
    "dataset.inputs": BILLION,
    "dataset.singular_values": [1.0] * 10**5,
    "training.steps": 10**30,
    "record.every": 0.001,
    "first_seed": 10**30,
    "sweep": {"seeds": [*range(1, 1001)], "first_seed": [*range(1000)]},
}


def test_sizes_beyond_any_machine(injecting):
    with injecting("sizes that exceed the memory", group=GROUP, recovers=NOTHING) as fault:
        for key, value in SIZES.items():
            *path, last = key.split(".")
            cell = merge_configs(CELL, {"seeds": BILLION} if key == "init_scales" else {})
            changed = reduce(lambda inner, name: {name: inner}, reversed(path), {last: value})
            config = {"experiments": {"paper": {"one": merge_configs(cell, changed)}}}
            with fault.injection(), pytest.raises(UserError) as caught:
                read_plan(config, {"mine.yaml": config})
            assert str(caught.value).startswith("mine.yaml: experiments.paper.one"), key
            assert len(str(caught.value)) < 1000
        fault.message = "mine.yaml: ... network.hidden.0: 1000000000: needs 480 GB of memory, ..."


NAMES = [
    {"experiments": {name: {"one": CELL}}}
    for name in ("smoke", "logs", "checkpoints", "variants", "figures", "slim", "a.b", "a/b",
                 "..", "A", "größe", "a b", "a\n", "", "a" * 300, "-n", "{x}")
] + [
    {"experiments": {"paper": {name: CELL}}} for name in ("../up", "a.b", "e" * 300, "{cell}")
] + [
    {"experiments": {"paper": {"one": CELL | {"sweep": {"network.hidden": [[4] * 150]}}}}},
    *({"results": name, "experiments": {"paper": {"one": CELL}}}
      for name in ("", "a\0b", "a\nb", "{a}", "a*", "r" * 300)),
]  # fmt: skip


def test_names_that_no_folder_can_have(injecting):
    kind = "invalid or reserved names of papers, experiments and folders"
    with injecting(kind, group=GROUP, recovers=NOTHING) as fault:
        for config in NAMES:
            with fault.injection(), pytest.raises(UserError) as caught:
                read_plan(config, {"mine.yaml": config})
            assert str(caught.value).startswith("mine.yaml: "), config
        fault.message = "mine.yaml: experiments.smoke: 'smoke': is no name for a paper, ..."


def test_names_that_folders_can_have(workspace, injecting):
    """Planned, and made: many equal widths, in a folder of any name."""
    changed = workspace.layers
    changed["glorot_moments"]["sweep"] = {"network.hidden": [[2] * 21]}
    changed["glorot_moments"] |= {"seeds": 1, "training": {"learning_rate": 1e-6, "steps": 10}}
    workspace.configure("layer_dynamics", changed)
    workspace.configure("deep_linear", {})
    workspace.claims("deep_linear")
    more = {"results": "./Ergebnisse für 'mich' \u03c3 $HOME/"}
    (workspace.path / "more.yaml").write_text(yaml.safe_dump(more))
    kind = "unusual but valid names of folders and experiments"
    with injecting(kind, group=GROUP, recovers="nothing: such names work") as fault:
        with fault.injection():
            workspace.snakemake("cells", "--config", "settings=more.yaml")
        made = (workspace.path / "Ergebnisse für 'mich' \u03c3 $HOME").glob("*/*/*/metrics.nc")
        fault.lost += len(list(made)) != 1
        fault.message = "none"


def test_claims_that_nobody_can_mean(workspace, injecting):
    path = workspace.path / "config/deep_linear/claims.yaml"
    texts = [text for kind in TEXTS.values() for text in kind if text not in ("", "null")]
    with injecting("a claims file that is not valid", group=GROUP, recovers=NOTHING) as fault:
        for text in texts:
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            with fault.injection(), pytest.raises(UserError) as caught:
                read_claims([path])
            assert str(caught.value).startswith(str(path))
        fault.message = "claims.yaml: where: what it is; what to do"
