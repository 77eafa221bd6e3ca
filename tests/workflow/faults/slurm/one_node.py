"""A SLURM of one node: this machine, with a GPU that is pretended, in a folder and on loopback.

Its daemons need no systemd, and are ended by the ids that they wrote. It takes the place of
/etc/slurm/slurm.conf, which steps of jobs read whatever their environment says: one at a time.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir, mkdtemp

import psutil

CONFIGURED = Path("/etc/slurm/slurm.conf")
PREFIX = "slurm-"
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
START = 30.0
"""Seconds that a daemon may take to start or to end."""
KILL_WAIT = 10
"""Seconds from SIGTERM to SIGKILL at a time limit."""
CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/munge.sock
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2
ReturnToService=2
MpiDefault=none
SwitchType=switch/none
MinJobAge=300
KillWait={kill_wait}
OverTimeLimit=0
InactiveLimit=0
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 Sockets=1 CoresPerSocket=2 ThreadsPerCore=1 \
RealMemory=16000 Gres=gpu:1 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str:
    """Why no SLURM can be started here; empty if one can."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        return f"{', '.join(absent)} not installed: apt-get install slurm-wlm munge"
    if os.geteuid() != 0:
        return "daemons of SLURM are started by root alone"
    if CONFIGURED.exists() and not left_behind():
        return f"{CONFIGURED} is of another SLURM"
    return ""


def left_behind() -> bool:
    """Whether the configuration is of such a SLURM as this, whose tests were killed."""
    folder = CONFIGURED.resolve().parent
    if (folder.parent, folder.name[: len(PREFIX)]) != (Path(gettempdir()).resolve(), PREFIX):
        return False
    with suppress(OSError, ValueError, psutil.Error):
        process = psutil.Process(int((folder / "slurmctld.pid").read_text()))
        return process.name() != "slurmctld"
    return True


@dataclass(frozen=True)
class Cluster:
    """A SLURM that runs."""

    folder: Path
    host: str

    def ask(self, *command: str) -> str:
        """What a program of SLURM prints."""
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        return done.stdout

    def jobs(self) -> dict[str, str]:
        """State of each job that is known, by its number."""
        lines = self.ask("squeue", "--noheader", "--states=all", "--format=%A %T").splitlines()
        return dict(line.split() for line in lines)

    def job(self, number: str) -> dict[str, str]:
        """What is known of a job, by SLURM's names."""
        told = self.ask("scontrol", "show", "job", "--oneliner", number).split()
        return dict(word.split("=", 1) for word in told if "=" in word)

    def start_node(self) -> None:
        """Starts the daemon of the node, and waits until it takes jobs."""
        self._daemon("slurmd", "-N", self.host)
        wait_for(self._alive)

    def stop_node(self) -> None:
        """Ends the daemon of the node; the processes of its jobs go on."""
        end(self.folder / "slurmd.pid")

    def fail_node(self) -> None:
        """Declares the node down, which ends its jobs."""
        self.ask("scontrol", "update", f"NodeName={self.host}", "State=DOWN", "Reason=test")

    def resume_node(self) -> None:
        """Takes the node back, unless it has come back by itself, once nothing runs on it."""
        wait_for(
            lambda: (
                "slurmstepd" not in {each.info["name"] for each in psutil.process_iter(["name"])}
            )
        )
        if not self._alive():
            with suppress(subprocess.CalledProcessError):
                self.ask("scontrol", "update", f"NodeName={self.host}", "State=RESUME")
        wait_for(self._alive)

    def _alive(self) -> bool:
        return self.ask("sinfo", "--noheader", "--format=%T").strip("*\n") in ALIVE

    def start_controller(self) -> None:
        self._daemon("slurmctld")

    def _daemon(self, name: str, *more: str) -> None:
        subprocess.run([name, "-f", str(self.folder / "slurm.conf"), *more], check=True)
        wait_for((self.folder / f"{name}.pid").exists)


ALIVE = ("idle", "mixed", "allocated", "completing")


@contextmanager
def started() -> Iterator[Cluster]:
    """A SLURM, ended with all of its jobs when it is left."""
    folder, host = Path(mkdtemp(prefix=PREFIX)), socket.gethostname().partition(".")[0]
    cluster = Cluster(folder, host)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)
        for name in ("state", "spool", "log"):
            (folder / name).mkdir()
        _start_munge(folder)
        stack.callback(end, folder / "munge/munged.pid")
        (folder / "gres.conf").write_text("Name=gpu File=/dev/null\n")
        controller, node = free_ports()
        (folder / "slurm.conf").write_text(
            CONFIGURATION.format(
                folder=folder, host=host, controller=controller, node=node, kill_wait=KILL_WAIT
            )
        )
        CONFIGURED.parent.mkdir(parents=True, exist_ok=True)
        if left_behind():
            CONFIGURED.unlink()
        CONFIGURED.symlink_to(folder / "slurm.conf")
        stack.callback(CONFIGURED.unlink)
        stack.callback(kill_lost, cluster)
        cluster.start_controller()
        stack.callback(end, folder / "slurmctld.pid")
        cluster.start_node()
        stack.callback(end, folder / "slurmd.pid")
        stack.callback(cancel_all, cluster)
        yield cluster


def _start_munge(folder: Path) -> None:
    """Starts the daemon that signs messages, by a key of its own."""
    own = folder / "munge"
    own.mkdir(mode=0o755)
    (own / "munge.key").write_bytes(secrets.token_bytes(128))
    (own / "munge.key").chmod(0o400)
    for path in (own, own / "munge.key"):
        shutil.chown(path, "munge", "munge")
    told = {"key-file": "munge.key", "socket": "munge.sock", "pid-file": "munged.pid",
            "log-file": "munged.log", "seed-file": "munged.seed"}  # fmt: skip
    options = [f"--{key}={own / name}" for key, name in told.items()]
    subprocess.run(["munged", *options], check=True, user="munge", group="munge")
    wait_for((own / "munge.sock").exists)


def kill_lost(cluster: Cluster) -> None:
    """Kills what jobs left behind.

    Without control groups SLURM knows processes by their parents, and loses those whose parent
    ended first. Snakemake may not end at SIGTERM: its handler takes a lock that its scheduler may
    hold.
    """
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("SLURM_CONF") == str(cluster.folder / "slurm.conf"):
                process.kill()


def cancel_all(cluster: Cluster) -> None:
    """Cancels all jobs, and waits until none of their processes is left."""
    cluster.ask("scancel", "--user=root")
    wait_for(lambda: not cluster.ask("squeue", "--noheader"), 3 * KILL_WAIT)


def free_ports() -> list[int]:
    """Two ports that nobody listens at."""
    with socket.socket() as one, socket.socket() as other:
        for each in (one, other):
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in (one, other)]


def end(pid_file: Path) -> None:
    """Ends the daemon that wrote its id into a file, and waits for it."""
    if not pid_file.exists():
        return
    pid = int(pid_file.read_text())
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not Path("/proc", str(pid)).exists())
    pid_file.unlink(missing_ok=True)


def wait_for(holds, seconds: float = START) -> None:
    """Waits until something holds.

    Raises:
        TimeoutError: it does not.
    """
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError("SLURM does not do what it was asked for")
        time.sleep(0.1)
