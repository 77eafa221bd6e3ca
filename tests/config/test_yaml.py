"""YAML files: the meaning of plain values, and what is refused."""

import math
import os
import tracemalloc
from pathlib import Path

import pytest
import yaml

from neuralrace.config.yaml import Loader, read_mapping, read_yaml
from neuralrace.errors import UserError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "mine.yaml"


def read(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_yaml(path)


MEANS = {
    "yes": "yes", "No": "No", "on": "on", "OFF": "OFF", "y": "y", "=": "=",
    "true": True, "True": True, "TRUE": True, "tRue": "tRue", "false": False,
    "null": None, "~": None, "": None, "nil": "nil",
    "1:30": "1:30", "1:30.5": "1:30.5", "2024-01-01": "2024-01-01",
    "2024-01-01 10:00:00": "2024-01-01 10:00:00", "1_000": "1_000",
    "10": 10, "+10": 10, "-10": -10, "010": 10, "08": 8, "0o17": 15, "0x1F": 31, "0b11": "0b11",
    "017:1": "017:1", "-0o17": "-0o17", "0xg": "0xg",
    "1e1": 10.0, "1e-3": 0.001, "1.5E+2": 150.0, ".5": 0.5, "5.": 5.0, "-.5e1": -5.0, "e1": "e1",
    "1.2.3": "1.2.3", ".": ".", "1e": "1e", "1_0.5": "1_0.5",
    ".inf": math.inf, "-.INF": -math.inf, "inf": "inf", "nan": "nan", ".infinity": ".infinity",
    "'1'": "1", '"true"': "true", "!!str 1": "1", "!!float 1": 1.0, "!!int 7": 7,
    "[1, 1.0, a]": [1, 1.0, "a"],
}  # fmt: skip
"""Examples of section 10.3.2 of YAML 1.2, and values with another meaning in YAML 1.1."""


@pytest.mark.parametrize("text", MEANS)
def test_plain_values_are_those_of_yaml_1_2(path, text):
    value = read(path, f"key: {text}")["key"]
    assert value == MEANS[text]
    assert type(value) is type(MEANS[text])


def test_nan_is_read(path):
    assert math.isnan(read(path, ".nan"))


def test_dumped_data_are_read_back(path):
    data = {"a": [1, 0.001, 1e300, "1", "true", None, True], "b": {"c": "1.0"}}
    assert read(path, yaml.safe_dump(data)) == data


def test_aliases_and_merge_keys_are_applied(path):
    text = "a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: {<<: [*a, {z: 4}]}\nd: *a"
    assert read(path, text) == {
        "a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 3}, "c": {"x": 1, "y": 2, "z": 4},
        "d": {"x": 1, "y": 2},
    }  # fmt: skip


REFUSED = {
    "2: a": "line 1, column 1: '2': a key is text; put it into quotes",
    "x: {true: a}": "'true': a key is text",
    "null: a": "'null': a key is text",
    "? \n: a": "'': a key is text",
    "? [1]\n: a": "a list: a key is text",
    "a: {<<: {1: b}}": "'1': a key is text",
    "a: 1\na: 2": "line 2: 'a': is there twice",
    "a: &x b\nb: 1\n*x : 2": "line 3: 'b': is there twice",
    "a: *x": "found undefined alias",
    "a: &x [*x]": "*x: an alias (*name) inside its own anchor",
    "a: !!int 1:30": "'1:30': is no int, as its tag says",
    "a: !!float text": "'text': is no float",
    "a: !!bool yes": "'yes': is no bool",
    "a: !!null b": "'b': is no null",
    "a: !!int [1]": "expected a scalar node",
    "a: !!map [1]": "expected a mapping node",
    "a: !!set {b}": "could not determine a constructor",
    "a: !!binary aGk=": "could not determine a constructor",
    "a: !!timestamp 2024-01-01": "could not determine a constructor",
    "a: !!omap [b: 1]": "could not determine a constructor",
    "a: !!merge b": "could not determine a constructor",
    "a: !mine b": "could not determine a constructor",
    "a: !!python/name:os.system": "could not determine a constructor",
    "a: 1\n---\nb: 2": "but found another document",
    "a:\n\t- b": "indent by spaces, not by tabs",
    b"a: \xff": "invalid start byte in byte 3; save it as UTF-8",
    "a: 1".encode("utf-16"): "invalid start byte in byte 0; save it as UTF-8",
    "a: \x01": "control characters are not allowed",
    "a: " + "b" * 3001: "a value of more than 3000 characters",
    "[" * 65 + "]" * 65: "nested too deeply, in more than 64 levels",
    "a0: &a0 []\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 90)): "line 64: nested",
    "a: &a [" + "1," * 1000 + "]\nb: [" + "*a," * 300 + "]": "more than 200000 values",
    "a: &a " + "b" * 3000 + "\nb: [" + "*a," * 9000 + "]": "more than 200000 values",
    " " * 10**7 + "a": "more than 10 MB; put data into a file of their own",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: repr(text)[:40])
def test_an_invalid_text_is_refused_in_one_line_without_much_memory(path, text):
    tracemalloc.start()
    with pytest.raises(UserError) as caught:
        read(path, text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert caught.value.file == str(path)
    assert REFUSED[text] in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert peak < 200e6


def test_pipes_and_devices_are_refused(path):
    os.mkfifo(path)
    for endless in (path, Path("/dev/zero")):
        with pytest.raises(UserError, match="is a pipe or a device, which may never end"):
            read_yaml(endless)


def test_a_large_sparse_file_is_refused(path):
    path.touch()
    os.truncate(path, 10**12)
    with pytest.raises(UserError, match="more than 10 MB"):
        read_yaml(path)


@pytest.mark.parametrize("name", ["gone", "\0", "x" * 300, "."])
def test_a_file_that_cannot_be_read_is_refused(tmp_path, name):
    with pytest.raises(UserError, match=r"cannot be read as YAML: |no such file|is a folder"):
        read_yaml(tmp_path / name)


@pytest.mark.parametrize(
    "text",
    [
        "__use_yte__: true", "__use_yte__: 1", '"__use\\x5fyte__": yes', "'__use_yte__': false",
        "a: &a __use_yte__\n*a : true", "<<: {__use_yte__: true}",
    ],
)  # fmt: skip
def test_a_file_that_asks_to_run_code_is_refused(path, text):
    path.write_text(text)
    for after_snakemake in (False, True):
        with pytest.raises(UserError, match="a configuration is data") as caught:
            read_mapping(path, after_snakemake)
        assert (caught.value.file, caught.value.key) == (str(path), "__use_yte__")
        assert ("Snakemake has run them already" in caught.value.remedy) == after_snakemake


def test_the_loader_uses_libyaml():
    assert issubclass(Loader, yaml.CSafeLoader)
