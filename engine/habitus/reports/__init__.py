"""Results for people to look at: figures as SVG, PDF and PNG, and reports as one HTML file.

See ``figures`` and ``ccbench`` for what can be drawn, ``style`` for how it looks, ``document`` for the
report. Jinja and matplotlib are imported where they are used.
"""

from habitus.reports.document import Report, ReportOptions, make_report, write_report_figures
from habitus.reports.figures import FigureOptions, skipped_figures, write_figures
from habitus.reports.pages import Skipped

__all__ = [
    "FigureOptions",
    "Report",
    "ReportOptions",
    "Skipped",
    "make_report",
    "skipped_figures",
    "write_figures",
    "write_report_figures",
]
