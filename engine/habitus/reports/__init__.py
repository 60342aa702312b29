"""Results for people to look at: figures, as SVG and PNG.

See ``figures`` for how they are asked for, ``style`` for how they look; the others draw one figure
each.
"""

from habitus.reports.figures import FigureOptions, skipped_figures, write_figures
from habitus.reports.pages import Skipped

__all__ = ["FigureOptions", "Skipped", "skipped_figures", "write_figures"]
