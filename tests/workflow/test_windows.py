"""The workflow on Windows, where it cannot run."""

import sys

from neuralrace.cli.main import main


def test_windows_is_refused_in_a_sentence(monkeypatch, capsys):
    for name in [name for name in sys.modules if name.startswith("neuralrace.workflow")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "platform", "win32")
    assert main(["run", "deep_linear/staircase", "-n"]) == 1
    printed = capsys.readouterr().err
    assert printed == "error: the workflow runs on Linux and macOS only; on Windows, use WSL\n"
