"""A run as one HTML file to hand on: no network, no script of data's, readable by anyone.

    made = make_report(Path("runs/first"), ReportOptions(labels=Path("runs/first-labels")))

``report`` puts it together; ``about``, ``coverage``, ``sessions``, ``samples``, ``labelled`` and
``pictures`` each make one part as plain data; ``rendering`` makes HTML of it, and is the only place
that knows HTML. Texts of models and corpora are data: see ``rendering`` for what that means.
"""

from habitus.reports.document.report import (
    Report,
    ReportOptions,
    make_report,
    write_report_figures,
)

__all__ = ["Report", "ReportOptions", "make_report", "write_report_figures"]
