"""End of a workflow run."""

from pathlib import Path

from neuralrace.errors import UserError
from neuralrace.workflow import scheduling


def test_a_full_disk_at_the_end_of_a_run_is_only_reported(tmp_path, monkeypatch, capsys):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/job.json").touch()
    full = UserError("cannot be written (the disk is full)", file="logs/scheduling.json")

    def write_record(*_: object) -> None:
        raise full

    monkeypatch.setattr(scheduling, "write_record", write_record)
    scheduling.end_run(tmp_path, started=0.0)
    assert capsys.readouterr().err == f"error: {full}\n"


def test_an_ended_run_records_its_cost_if_a_job_ran(tmp_path):
    (tmp_path / "logs").mkdir()
    record = Path(tmp_path / "logs/scheduling.json")
    scheduling.end_run(tmp_path, started=0.0)
    assert not record.exists()
    (tmp_path / "logs/job.json").touch()
    scheduling.end_run(tmp_path, started=0.0)
    assert '"scheduling"' in record.read_text()
