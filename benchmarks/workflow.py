"""Where the core-seconds of a run of the workflow went, and how good its estimates were.

Every job writes what it spent on what beside its log. Run it after `make figures` from nothing:

    python benchmarks/workflow.py

It prints a table, and writes results/benchmarks.json and results/benchmarks.png.
"""

import json
from collections import Counter
from functools import cache, reduce
from heapq import heapify, heappop, heappush
from pathlib import Path

import matplotlib.pyplot as plt

from neuralrace.config.cost import estimate_cost
from neuralrace.config.load import merge_configs, paper_files, read_file, read_plan
from neuralrace.results.atomic import replacing, write_text

WORK = ("train", "solve", "measure", "judge", "draw")
"""Stages that are the work itself; all others are what it takes to get there."""
CORES = (2, 4, 8, 16)
"""Numbers of cores for which a run is simulated."""


def records() -> dict[str, dict]:
    """What every job has written, by its log."""
    files = [*Path("results/logs").rglob("*.json"), *Path("figures/logs").rglob("*.json")]
    return {str(file.with_suffix("")): json.loads(file.read_text()) for file in sorted(files)}


def estimates(jobs: dict[str, dict], entries: list[dict]) -> tuple[list[float], list[float]]:
    """Estimated over measured of each cell: core-seconds, where cells share programs; memory."""
    measured: Counter[str] = Counter()
    for entry in entries:
        if entry["stage"] in ("compile", "train", "solve", "measure"):
            measured[entry["cell"]] += entry["core_seconds"]
    config = reduce(merge_configs, map(read_file, paper_files()))
    seconds, memory, known = [], [], set()
    costs = {cell_id: estimate_cost(cell) for cell_id, cell in read_plan(config, {}).cells.items()}
    # in the order of a run, as the first cell of a program compiles it
    for cell_id, cost in sorted(costs.items(), key=lambda item: -item[1].compile - item[1].train):
        if job := jobs.get(f"results/logs/{cell_id}/train"):
            seconds.append(cost.seconds(known) / measured[cell_id])
            memory.append(cost.memory_mb / job["peak_mb"])
        known.add(cost.program)
    return seconds, memory


def schedule(jobs: dict[str, dict], cores: int) -> float:
    """Seconds of a run on this many cores, of jobs that take the core-seconds that they took.

    Snakemake starts the job with the longest way to the end. A figure waits for all metrics of its
    paper, as no record says which it reads.
    """
    cost = {job: sum(e["core_seconds"] for e in of["stages"]) for job, of in jobs.items()}
    waits: dict[str, set[str]] = {job: set() for job in cost}
    for job in cost:
        folder, _, stage = job.rpartition("/")
        if stage == "measure":
            waits[job] = {f"{folder}/{before}" for before in ("train", "solve")} & cost.keys()
        elif job.startswith("figures/"):
            paper = folder.rpartition("/")[2]
            waits[job] = {
                other
                for other in cost
                if other.startswith(f"results/logs/{paper}/") and other.endswith("/measure")
            }
    after: dict[str, list[str]] = {job: [] for job in cost}
    for job, before in waits.items():
        for other in before:
            after[other].append(job)

    @cache
    def to_the_end(job: str) -> float:
        return cost[job] + max(map(to_the_end, after[job]), default=0.0)

    ready = [(-to_the_end(job), job) for job, before in waits.items() if not before]
    heapify(ready)
    running: list[tuple[float, str]] = []
    now = 0.0
    while ready or running:
        while ready and len(running) < cores:
            _, job = heappop(ready)
            heappush(running, (now + cost[job], job))
        now, done = heappop(running)
        for job in after[done]:
            waits[job].discard(done)
            if not waits[job]:
                heappush(ready, (-to_the_end(job), job))
    return now


def main() -> None:
    """Prints, writes and draws."""
    jobs = records()
    entries = [entry for job in jobs.values() for entry in job["stages"]]
    stages: Counter[str] = Counter()
    for entry in entries:
        stages[entry["stage"]] += entry["core_seconds"]
    whole = sum(stages.values())
    table = [
        {"name": name, "core_seconds": round(seconds, 1), "share": round(seconds / whole, 4)}
        for name, seconds in stages.most_common()
    ]
    overhead = 1 - sum(stages[name] for name in WORK) / whole
    ratios, memory = estimates(jobs, entries)
    within = sum(0.5 <= ratio <= 2 for ratio in ratios) / len(ratios)
    print(f"{'stage':<12}{'core-s':>9}{'share':>8}")
    for row in table:
        print(f"{row['name']:<12}{row['core_seconds']:>9.1f}{row['share']:>8.1%}")
    print(f"all {whole:.0f} core-seconds; {overhead:.1%} of them are none of {', '.join(WORK)}")
    print(f"the estimate is within a factor of two for {within:.1%} of {len(ratios)} cells")
    seconds = {cores: round(schedule(jobs, cores)) for cores in CORES}
    longest = max(sum(e["core_seconds"] for e in job["stages"]) for job in jobs.values())
    print(f"longest job {longest:.0f} core-seconds; by the clock, if cores stay as fast, on")
    print("; ".join(f"{cores} cores {of} s" for cores, of in seconds.items()))
    print(f"estimated memory is {min(memory):.2f} to {max(memory):.2f} times what trainings took")
    report = {
        "stages": table,
        "overhead": overhead,
        "seconds_on_cores": seconds,
        "cells_within_factor_two": within,
        "memory_over_peak": [min(memory), max(memory)],
    }
    write_text(json.dumps(report, indent=1) + "\n", "results/benchmarks.json")
    figure, axes = plt.subplots(figsize=(5, 2.4), layout="constrained")
    names = [row["name"] for row in table][::-1]
    shades = ["0.35" if name in WORK else "0.75" for name in names]
    axes.barh(names, [stages[name] for name in names], color=shades)
    axes.set_xlabel("core-seconds (light: none of the work itself)")
    with replacing(Path("results/benchmarks.png")) as temporary:
        figure.savefig(temporary, format="png", dpi=200)


if __name__ == "__main__":
    main()
