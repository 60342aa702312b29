"""Runs as files for others: the consensus subset of a run of labels.

    with RunDir.open(path, write=False) as run:
        KINDS["consensus"].export(run, Wish(Path("out")))

See ``kinds`` for what there is, ``consensus`` for what stands in its tables, ``tablefiles`` for how
CSV, workbooks and Parquet are written.
"""

from habitus.exports.agreeing import PUBLISHED, Agreement, Tally
from habitus.exports.consensus import Consensus, ConsensusOptions, Made, export_consensus
from habitus.exports.kinds import KINDS, Exported, Kind, Wish
from habitus.exports.tablefiles import Format, check_table, open_table

__all__ = [
    "KINDS",
    "PUBLISHED",
    "Agreement",
    "Consensus",
    "ConsensusOptions",
    "Exported",
    "Format",
    "Kind",
    "Made",
    "Tally",
    "Wish",
    "check_table",
    "export_consensus",
    "open_table",
]
