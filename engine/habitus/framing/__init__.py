"""From the labels of judges to statements about how answers are framed.

    analysis = find_analysis("franz")
    labels = read_labels(run, analysis)
    for framing in analyse(labels, analysis):
        for name, table in framing_tables(framing).items(): ...

How often a level (a model, a setting, a culture) shows a characteristic; what goes with what; with
intervals, tests and their correction, and a plain reason wherever nothing can be said. Which
questions are put, and by what rules, stands in an analysis file. The package knows nothing of how
labels were made, nor of how a table or a figure is drawn.
"""

from habitus.framing.analysing import Asked, Progress, analyse
from habitus.framing.analysisfile import AnalysisFile
from habitus.framing.frame import MISSING, NOT_ASKED, Codes, Frame
from habitus.framing.loading import find_analysis, load_analysis
from habitus.framing.movements import Movement, direction, movements
from habitus.framing.rankings import notation
from habitus.framing.reading import Labels, default_analysis, read_labels
from habitus.framing.results import (
    Comparison,
    Delta,
    DeltaComparison,
    Framing,
    Prevalence,
    Ranking,
    SetAside,
    Subset,
)
from habitus.framing.tables import framing_tables
from habitus.framing.writing import framings_json, write_framings

__all__ = [
    "MISSING",
    "NOT_ASKED",
    "AnalysisFile",
    "Asked",
    "Codes",
    "Comparison",
    "Delta",
    "DeltaComparison",
    "Frame",
    "Framing",
    "Labels",
    "Movement",
    "Prevalence",
    "Progress",
    "Ranking",
    "SetAside",
    "Subset",
    "analyse",
    "default_analysis",
    "direction",
    "find_analysis",
    "framing_tables",
    "framings_json",
    "load_analysis",
    "movements",
    "notation",
    "read_labels",
    "write_framings",
]
