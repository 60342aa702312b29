"""Posts of Reddit dumps, filtered, freed of user names and mapped to countries.

    countries = find_country_map("square")
    counts = build([Path("RS_2019-01.zst")], countries, Path("posts.parquet"))
    counts.reasons[Reason.DELETED]
    rows = read_shares(Path("posts.parquet"))     # posts by country, and by category if there

Lines stream through: a file of any size needs the same memory, but for one hash for the id and one
for the text of each post that is kept. The package asks no model: a ``category`` column is added to
the posts by whoever labels them, and is counted here when it is there.
"""

from habitus.corpora.building import Counts, FileCount, Progress, build
from habitus.corpora.cleaning import clean_body, clean_title, hide_names
from habitus.corpora.countries import CountryMap, find_country_map, load_country_map
from habitus.corpora.filters import Reason
from habitus.corpora.lines import LineReader
from habitus.corpora.shares import CATEGORY, Share, read_shares
from habitus.corpora.stored import (
    COLUMNS,
    Post,
    add_column,
    check_output,
    column_names,
    columns_of,
    counts_path,
    question_of,
    read_posts,
    title_and_body,
)

__all__ = [
    "CATEGORY",
    "COLUMNS",
    "CountryMap",
    "Counts",
    "FileCount",
    "LineReader",
    "Post",
    "Progress",
    "Reason",
    "Share",
    "add_column",
    "build",
    "check_output",
    "clean_body",
    "clean_title",
    "column_names",
    "columns_of",
    "counts_path",
    "find_country_map",
    "hide_names",
    "load_country_map",
    "question_of",
    "read_posts",
    "read_shares",
    "title_and_body",
]
