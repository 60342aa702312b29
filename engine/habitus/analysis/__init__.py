"""From the records of a run to the numbers of CCBench, and to tables that can be published.

    design = Design(cultures, states, kinds, topics)
    table = read_verdicts(evaluations, design)
    found = results(table, ResultOptions(seed=7, by=("culture",)))
    for text in results_tables(found): ...

Records are read one at a time and in any order. Nothing here knows where they are stored or how
a table is drawn.
"""

from habitus.analysis.common import CommonRow
from habitus.analysis.design import DIMENSIONS, Design, Dimension, shown_norms
from habitus.analysis.differences import Difference
from habitus.analysis.embeddedness import Embeddedness
from habitus.analysis.filtering import FilterRow, FilterTable, filter_table
from habitus.analysis.measures import MEASURES
from habitus.analysis.options import MissingRule, ResultOptions
from habitus.analysis.outcomes import (
    Cause,
    OutcomeCounter,
    OutcomeRow,
    OutcomeTable,
    causes,
)
from habitus.analysis.outcometables import cause_table, outcome_tables
from habitus.analysis.reading import read_verdicts
from habitus.analysis.results import Results, results
from habitus.analysis.rows import Row
from habitus.analysis.safety import SafetyRow, safety_rows
from habitus.analysis.tables import ends_text, filter_text, named_tables, results_tables
from habitus.analysis.verdicts import Cell, VerdictTable

__all__ = [
    "DIMENSIONS",
    "MEASURES",
    "Cause",
    "Cell",
    "CommonRow",
    "Design",
    "Difference",
    "Dimension",
    "Embeddedness",
    "FilterRow",
    "FilterTable",
    "MissingRule",
    "OutcomeCounter",
    "OutcomeRow",
    "OutcomeTable",
    "ResultOptions",
    "Results",
    "Row",
    "SafetyRow",
    "VerdictTable",
    "cause_table",
    "causes",
    "ends_text",
    "filter_table",
    "filter_text",
    "named_tables",
    "outcome_tables",
    "read_verdicts",
    "results",
    "results_tables",
    "safety_rows",
    "shown_norms",
]
