# SPDX-License-Identifier: GPL-2.0-or-later
"""A Redis under load moves: how long its client waits, and which steps that time consists of."""

import statistics

import moves
import pair as pairs

METHOD = "a Redis of incompressible data moves over a 1 Gbit/s link while a client counts; stock docker checkpoint beside it"
VARIANTS = {"20.10": "20.10-v1", "28": "28-v2"}
# ms; a step below this explains nothing.
SHORT_MS = 5


def options(parser):
    """Fewer of everything for a quick look."""
    parser.add_argument("--megabytes", type=int, nargs="+", default=[0, 48, 223], help="data in the Redis")
    parser.add_argument("--runs", type=int, default=5, help="moves of each size (default: 5)")
    parser.add_argument("--docker", nargs="+", choices=VARIANTS, default=list(VARIANTS), help="versions of Docker")
    parser.add_argument("--no-baseline", action="store_true", help="do not compare with docker checkpoint")


def inside(report):
    """{"side: step": ms of it inside the downtime}, the longer ones. The report's destination times are on the source's clock."""
    begin = min(each["start_ms"] for each in report["steps"] if each["name"] == "stop all tasks")
    end = begin + report["downtime_ms"]
    found = {}
    for step in report["steps"]:
        part = min(end, step["start_ms"] + step["ms"]) - max(begin, step["start_ms"])
        if part >= SHORT_MS:
            found[f"{step['side']}: {step['name']}"] = part
    return found


def summary(values):
    """Median, least and most."""
    return {"median": round(statistics.median(values), 1), "min": round(min(values), 1), "max": round(max(values), 1)}


def one_run(pair, megabytes):
    """A move from a to b; both are empty afterwards."""
    report, seen = moves.with_dmigrate(pair, megabytes, quiet=True)
    pair.bed.b.docker("rm", "-f", "-v", "cache")
    if seen["wrong"] or seen["breaks"]:
        raise RuntimeError(f"the client saw {seen}")
    return {"megabytes": megabytes, "gap_ms": seen["gap_ms"], "downtime_ms": report["downtime_ms"],
            "total_ms": report["total_ms"], "steps": inside(report)}


def measure(version, chosen):
    """All runs on one version of Docker, and the baselines where it can do that."""
    compare = version == "20.10" and not chosen.no_baseline
    bed = pairs.testbed.Testbed.up(name=f"bench-{version.replace('.', '-')}", experimental=compare, rate=moves.LINK,
                                   **pairs.VARIANTS[VARIANTS[version]])
    pair = pairs.Pair(bed)
    runs = []
    try:
        pair.set_up()
        bed.image("redis")
        for megabytes in chosen.megabytes:
            runs += [{"docker": version, **one_run(pair, megabytes)} for _ in range(chosen.runs)]
        for megabytes in chosen.megabytes if compare else []:
            seen = moves.with_docker(pair, megabytes)
            runs.append({"docker": version, "megabytes": megabytes, "baseline": True, "gap_ms": seen["gap_ms"]})
    finally:
        pair.stop()
        bed.down()
    return runs


def digest(runs):
    """{KEY: number}, and the steps of each case."""
    figures, steps = {}, {}
    for case in sorted({(each["docker"], each["megabytes"]) for each in runs}):
        key = f"docker{case[0]}_{case[1]}mb"
        of_case = [each for each in runs if (each["docker"], each["megabytes"]) == case]
        ours = [each for each in of_case if not each.get("baseline")]
        for name in ("gap_ms", "downtime_ms", "total_ms"):
            for what, value in summary([each[name] for each in ours]).items():
                figures[f"{key}_{name}_{what}"] = value
        for stock in (each for each in of_case if each.get("baseline")):
            figures[f"{key}_baseline_gap_ms"] = stock["gap_ms"]
            figures[f"{key}_ratio"] = round(figures[f"{key}_gap_ms_median"] / stock["gap_ms"], 3)
        names = {name for each in ours for name in each["steps"]}
        steps[key] = {name: summary([each["steps"].get(name, 0.0) for each in ours]) for name in sorted(names)}
    return figures, steps


def table(figures, steps):
    """Where the downtime goes, in Markdown."""
    lines = ["| step over 5 ms inside the downtime | " + " | ".join(steps) + " |", "|---|" + "---:|" * len(steps)]

    def row(title, cells):
        lines.append(f"| {title} | " + " | ".join(cells) + " |")

    def cell(of):
        return f"{of['median']:.0f} ({of['min']:.0f}-{of['max']:.0f})" if of else ""

    for name in sorted({name for each in steps.values() for name in each}):
        row(name, [cell(each.get(name)) for each in steps.values()])
    for name in ("downtime_ms", "gap_ms", "total_ms"):
        row(name, [cell({what: figures[f"{key}_{name}_{what}"] for what in ("median", "min", "max")}) for key in steps])
    for name in ("baseline_gap_ms", "ratio") if any(key.endswith("_ratio") for key in figures) else ():
        row(name, [str(figures.get(f"{key}_{name}", "")) for key in steps])
    return "\n".join(lines) + "\n\nms: median (least-most). Steps overlap: the two sides work at the same time."


def run(chosen):
    """Entry point of bench/run."""
    if not chosen.no_baseline and "20.10" in chosen.docker:
        moves.build_stock()
    runs = [each for version in chosen.docker for each in measure(version, chosen)]
    figures, steps = digest(runs)
    return {"runs": runs, "figures": figures, "steps": steps, "markdown": table(figures, steps)}
