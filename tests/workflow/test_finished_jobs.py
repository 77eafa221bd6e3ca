"""What Snakemake prints about jobs that have finished."""

import logging
from enum import Enum
from types import SimpleNamespace

import pytest

from neuralrace.workflow.messages import shorten_messages

Event = Enum("Event", ["JOB_INFO", "JOB_STARTED", "JOB_FINISHED", "PROGRESS", "RUN_INFO"])
Quiet = Enum("Quiet", ["HOST", "PROGRESS"])


@pytest.fixture
def logger():
    logger = logging.getLogger("snakemake.logging")
    before, level = list(logger.filters), logger.level
    logger.setLevel(logging.INFO)
    yield logger
    logger.setLevel(level)
    for each in set(logger.filters) - set(before):
        logger.removeFilter(each)


def run(logger, caplog, quiet):
    """Messages of a run of two jobs."""
    names = {4: ("train", {"cell": "deep_linear/exact/main"}), 0: ("claims", {})}
    jobs = [
        SimpleNamespace(jobid=number, rule=SimpleNamespace(name=rule), wildcards_dict=wildcards)
        for number, (rule, wildcards) in names.items()
    ]
    dag = SimpleNamespace(needrun_jobs=lambda exclude_finished: jobs)
    settings = SimpleNamespace(quiet={quiet})
    shorten_messages(SimpleNamespace(dag=dag, output_settings=settings))
    with caplog.at_level(logging.INFO, logger="snakemake.logging"):
        logger.info("Job stats", extra={"event": Event.RUN_INFO})
        for number in names:
            logger.info("Select jobs to execute...")
            logger.warning("Cannot restore a.nc: no backup found.")
            logger.info("Execute 1 jobs...", extra={"event": Event.JOB_STARTED})
            logger.info("", extra={"event": Event.JOB_INFO, "jobid": number})
            finished = {"event": Event.JOB_FINISHED, "job_id": number}
            logger.info(f"Finished jobid: {number}", extra=finished)
            logger.info(None, extra={"event": Event.PROGRESS})
    return [record.getMessage() for record in caplog.records]


def test_a_finished_job_is_one_line_with_its_name(logger, caplog):
    first, *lines = run(logger, caplog, Quiet.HOST)
    assert first == "Job stats"
    assert [line[9:] for line in lines] == [
        "deep_linear/exact/main: train done, 1 of 2",
        "claims done, 2 of 2",
    ]


def test_who_asks_for_descriptions_gets_those_of_snakemake(logger, caplog):
    assert len(run(logger, caplog, Quiet.PROGRESS)) == 13
