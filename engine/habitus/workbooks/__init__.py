"""Workbooks (.xlsx): one sheet as rows, and a table as a workbook.

    for row in read_rows(Path("answers.xlsx")):
        row["response"], row.cell("response")     # "So it is.", "B7"
    with WorkbookWriter(path) as book:
        book.write(["id", "score"])
        book.write(["a1", 0.5])

openpyxl reads and XlsxWriter writes; here stand what a stranger's file may take (``parts``), what a
cell may not hold (``book``), and the limits (``limits``). Both ways stream: memory depends neither on
the number of rows nor on the texts, but for the table of texts that a file may share between its
cells, which has a limit. Nothing of a file is run or fetched. What a column means is not known here.
"""

from habitus.workbooks.limits import CELL_LENGTH, COLUMNS, ROWS, Value, cell_length
from habitus.workbooks.reading import SheetRow, read_rows, sheet_names
from habitus.workbooks.writing import WorkbookWriter, check_size

__all__ = [
    "CELL_LENGTH",
    "COLUMNS",
    "ROWS",
    "SheetRow",
    "Value",
    "WorkbookWriter",
    "cell_length",
    "check_size",
    "read_rows",
    "sheet_names",
]
