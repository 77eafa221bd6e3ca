"""The workflow on a real SLURM: the same results in few jobs, and nothing lost by its faults."""

import pytest

pytestmark = [pytest.mark.faults, pytest.mark.workflow]

CELL = "layer_dynamics/glorot_moments/main"
TARGET = f"results/{CELL}/metrics.nc"
FIGURES = "results/figures/deep_linear/time_to_learn"
KINDS = {".nc", ".png", ".pdf", ".svg", ".csv", ".md"}


def made(path):
    """All that a run is for, by name."""
    files = [*(path / "results").rglob("*"), *(path / "figures").rglob("*")]
    return {
        str(file.relative_to(path)): file.read_bytes() for file in files if file.suffix in KINDS
    }


def training(submitting, steps):
    """One cell that trains long, and its result without faults."""
    changed = submitting.workspace.layers
    changed["glorot_moments"]["training"] = {"learning_rate": 1e-6, "steps": steps}
    changed["glorot_moments"]["record"]["every"] = steps // 20
    submitting.workspace.configure("layer_dynamics", changed)


def continued(submitting):
    """Whether the job went on from a checkpoint."""
    return "continuing at step" in submitting.log()


def alone(submitting):
    """The result of the same command on this machine, from nothing."""
    path = submitting.path / TARGET
    found = path.read_bytes()
    (submitting.path / "results").rename(submitting.path / "of_slurm")
    submitting.workspace.snakemake(TARGET)
    return found == path.read_bytes()


def test_the_results_are_those_of_one_machine_in_few_jobs(submitting, finished):
    targets = ("metrics", "claims", "figures/deep_linear/time_to_learn.png")
    with submitting.run(*targets) as run:
        run.succeeds()
    assert len(run.submitted) == 2  # one for each paper
    assert made(submitting.path) == made(finished.path)


def test_a_job_asks_for_what_its_cells_need(submitting):
    training(submitting, 4_000_000)
    submitting.replace("profiles/slurm/config.yaml", "gpus=0", "gpus=1")
    submitting.replace(  # small cells, too, are worth a GPU
        "src/neuralrace/cost.py", "GPU_COMPILE = 2e12, 5e-6, 40.0", "GPU_COMPILE = 2e12, 0, 0"
    )
    with submitting.run(TARGET) as run:
        told = submitting.cluster.job(run.job(1))
        assert told["TresPerJob"] == "gres:gpu:1"
        assert told["MinMemoryNode"] == "700M"
        assert told["NumCPUs"] == "1"
        assert told["Partition"] == "main"
        assert told["Account"] == "mine"
        submitting.cluster.ask("scancel", run.job(1))
        told = submitting.cluster.job(run.job(2))
        assert told["MinMemoryNode"] == "1400M"
        submitting.cluster.ask("scancel", "--user=root")


def test_a_cancelled_job_goes_on(submitting, injecting):
    training(submitting, 1_500_000)
    with injecting("job cancelled by scancel", group="Cluster", recovers="by itself") as fault:
        with submitting.run(TARGET) as run:
            job = run.job(1)
            run.wait_for(lambda: ": step " in submitting.log())
            told = submitting.log()
            with fault.injection():
                submitting.cluster.ask("scancel", job)
                run.wait_for(lambda: run.job(2))
                run.succeeds()
        assert ": step " in told
        fault.message = "SLURM status is: 'CANCELLED'"
        assert fault.message in run.text
        fault.lost += not continued(submitting)
        fault.wrong += not alone(submitting)


def test_a_job_at_its_time_limit_goes_on_with_more_time(submitting, injecting):
    training(submitting, 6_000_000)
    submitting.replace("src/neuralrace/schedule.py", "10 + int(4 * self.seconds / 60)", "1")
    with injecting("time limit of a job in the middle of training", group="Cluster",
                   recovers="by itself, with twice the time") as fault:  # fmt: skip
        with submitting.run(TARGET) as run, fault.injection():
            assert submitting.cluster.job(run.job(1))["TimeLimit"] == "00:01:00"
            second = run.job(2)
            assert submitting.cluster.job(second)["TimeLimit"] == "00:02:00"
            run.succeeds()
        fault.message = "SLURM status is: 'TIMEOUT'"
        assert fault.message in run.text
        fault.lost += not continued(submitting)
        fault.wrong += not alone(submitting)


def test_the_daemon_of_a_node_stops_and_starts_again(submitting, injecting):
    training(submitting, 1_000_000)
    with injecting("slurmd stopped and started again", group="Cluster",
                   recovers="by itself") as fault:  # fmt: skip
        with submitting.run(TARGET) as run:
            run.wait_for(lambda: ": step " in submitting.log())
            with fault.injection():
                submitting.cluster.stop_node()
                submitting.cluster.start_node()
                run.succeeds()
        fault.message = "none: the job goes on"
        fault.lost += len(run.submitted) != 1
        fault.wrong += not alone(submitting)


def test_a_job_whose_node_fails_is_started_again_by_slurm(submitting, injecting):
    training(submitting, 1_500_000)
    node = submitting.cluster.host
    with injecting("node of a job fails", group="Cluster",
                   recovers="by itself: SLURM starts the job again") as fault:  # fmt: skip
        with submitting.run(TARGET) as run:
            job = run.job(1)
            run.wait_for(lambda: ": step " in submitting.log())
            with fault.injection():
                asked = ("scontrol", "update", f"NodeName={node}")
                submitting.cluster.ask(*asked, "State=DOWN", "Reason=test")
                run.wait_for(lambda: submitting.cluster.jobs()[job] != "RUNNING")
                submitting.cluster.ask(*asked, "State=RESUME")
                run.succeeds()
        fault.message = "none: the job waits in the queue again"
        assert run.submitted == [job]
        fault.wrong += not alone(submitting)
