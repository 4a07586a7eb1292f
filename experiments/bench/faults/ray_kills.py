"""Runs on a Ray cluster whose nodes, command or head are killed, and clusters that cannot carry out a run."""

import os
import shutil
from collections.abc import Callable, Mapping

from experiments.bench.faults.cluster import Cluster
from experiments.bench.faults.command import Running
from experiments.bench.faults.kills import phase
from experiments.bench.faults.lab import Bench
from experiments.bench.faults.outcomes import Outcome
from skg_bench.core.package import PACKAGE

_BY_RAY = "launcher=ray", "workers=2"
_TRIES = 5  # where the command had ended before the moment came
_NOTICED = (1, 2, 5, 10, 30, 90)  # s


def by_node(bench: Bench) -> Outcome | None:
    """One of two nodes is killed; in every third trial another one joins. The command has to end by itself.

    None: it had always ended before.
    """
    cluster = Cluster(bench, nodes=2)
    if (running := _under_way(bench)) is None:
        return None
    reached, seconds = phase(bench), cluster.kill_node(bench.trial // 2 % 2)
    if joins := bench.trial % 3 == 0:
        cluster.join()
    done = running.wait()
    bench.note(done, "the command whose node was killed")
    if done.code == 0:
        bench.same_figures(bench.out, "the command whose node was killed")
    else:
        bench.finish(*_BY_RAY)
    noticed = next(f"noticed within {most} s" for most in _NOTICED if seconds <= most)
    return bench.outcome("kill -9 of a Ray node", f"{reached}, {noticed}{', another joins' if joins else ''}")


def by_command(bench: Bench) -> Outcome | None:
    """The command is killed; then it goes on: in every other trial on this machine alone, as three parts and whole."""
    Cluster(bench, nodes=2)
    if (running := _under_way(bench)) is None:
        return None
    reached = phase(bench)
    running.kill()
    running.close()
    if alone := bench.trial % 2 == 1:
        for number in range(3):
            bench.note(bench.start(f"part={number}/3").wait(), f"part={number}/3")
    bench.finish(*([] if alone else _BY_RAY))
    return bench.outcome(
        "kill -9 of a command on Ray", f"{reached}, then {'part=I/3 and local' if alone else 'ray again'}"
    )


def by_head(bench: Bench) -> Outcome | None:
    """The head is killed: the command says so, and goes on with another head."""
    cluster = Cluster(bench, nodes=1)
    if (running := _under_way(bench)) is None:
        return None
    reached = phase(bench)
    cluster.kill_head()
    done = running.wait()
    bench.note(done, "the command whose head was killed")
    if done.code == 0:
        bench.same_figures(bench.out, "the command whose head was killed")
    cluster.close()
    Cluster(bench, nodes=1)
    bench.finish(*_BY_RAY)
    return bench.outcome("kill -9 of the head of Ray", f"{reached}, exit code {done.code}")


def refused(bench: Bench) -> Outcome:
    """Refusal without a token, and of a node that does not see the folder or has other code; then the run goes on."""
    kind = list(_CLUSTERS)[bench.trial % len(_CLUSTERS)]
    _CLUSTERS[kind](bench)
    done = bench.start(*_BY_RAY).wait()
    bench.note(done, f"the command with {kind}")
    if done.code != 2 or not bench.messages or _SAYS[kind] not in done.message:
        bench.ends.append(("wordless", f"with {kind}: exit code {done.code}: {done.message[-400:]}"))
    bench.finish()
    return bench.outcome("a cluster that must be refused", kind)


def _tokenless(bench: Bench) -> None:
    bench.environment = {"RAY_AUTH_MODE": "disabled", "RAY_ADDRESS": "127.0.0.1:6379"}


def _other_folder(bench: Bench) -> None:
    """A node for which a file system of its own lies over the folder of the trial."""
    Cluster(bench, nodes=0).join(*_alone(f"mount -t tmpfs skg-faults {bench.folder}"))


def _other_code(bench: Bench) -> None:
    """A node with a module that has one line more."""
    other = bench.folder / ".package"
    shutil.copytree(PACKAGE, other, ignore=shutil.ignore_patterns("__pycache__"))
    with (other / "engine" / "step.py").open("a") as module:
        module.write("ONE_MORE = True\n")
    Cluster(bench, nodes=0).join(*_alone(f"mount --bind {other} {PACKAGE}"))


def _alone(mount: str) -> tuple[str, ...]:
    """Words before a command which then sees file systems of its own."""
    return "unshare", "--mount", "sh", "-c", f'{mount} && exec "$0" "$@"'


_CLUSTERS: Mapping[str, Callable[[Bench], None]] = {
    "no token": _tokenless,
    **({"another folder": _other_folder, "other code": _other_code} if os.geteuid() == 0 else {}),
}
_SAYS = {"no token": "ray get-auth-token", "another folder": "cannot write", "other code": "code"}


def _under_way(bench: Bench) -> Running | None:
    """The command at a moment after a worker has begun, in every other trial after the first result; None: it had
    always ended before.
    """
    late = bench.trial % 2 == 0
    for attempt in range(_TRIES):
        bench.clear()
        running = bench.start(*_BY_RAY)
        begun = running.until(lambda: _begun(bench, late=late), bench.lab.limit)
        if begun and running.until(lambda: False, float(bench.rng.uniform(0, bench.lab.seconds)) * 0.5**attempt):
            return running
        bench.note(running.wait())
    return None


def _begun(bench: Bench, *, late: bool) -> bool:
    """Is there a seal, which says that tasks are on the cluster, or, if `late`, a result?"""
    if late:
        return any(any((bench.out / name).glob("*")) for name in ("turns", "pieces"))
    return any(bench.out.glob(".ray-*"))
