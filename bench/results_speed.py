"""CPU seconds and memory from stored verdicts to printed results, at the size of the full plan.

    PYTHONPATH=engine:tests python bench/results_speed.py [targets]

The full plan is 60 personas x 52 queries x 4 settings, some 120,000 verdicts for one target.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from habitus.analysis import ResultOptions, read_verdicts, results
from results_fixture import design, drawn, evaluations

SETTINGS = ("none", "hist", "ccot", "norms")


def main() -> None:
    targets = tuple(f"target-{i}" for i in range(int(sys.argv[1]) if len(sys.argv) > 1 else 1))
    plan = design(cultures=6, personas=10, queries=52, norms=14)
    records = evaluations(plan, drawn(1, missing=0.005), targets=targets, settings=SETTINGS)
    held = list(records) if len(targets) == 1 else records
    before = time.process_time()
    table = read_verdicts(held, plan)
    read = time.process_time()
    label = "read" if len(targets) == 1 else "make and read"
    print(f"{np.count_nonzero(table.answers > -2):,} verdicts; {label} {read - before:.2f} s CPU")
    for by in ((), ("culture",), ("topic", "culture"), ("query",)):
        before = time.process_time()
        found = results(table, ResultOptions(seed=1, by=by))
        size = len(found.json_bytes())
        spent = time.process_time() - before
        print(f"by {by or 'nothing'}: {len(found.rows)} rows, {size:,} bytes, {spent:.2f} s CPU")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
