"""Checklists: queries, recommendations for (norm, state, query), and verdicts on responses.

    queries = load_queries(path)
    recommendation = await Recommender(...).recommend(norm, state, query)
    evaluation = await Evaluator(...).evaluate(response, portrait, recommendations)

A recommendation says how a good answer to a query accommodates a person who follows or avoids a
norm. It depends on (norm, state, query) only and is shared by personas. The evaluator sees one
response and the persona's items; neither query, nor state, nor history.
"""

from habitus.checklists.evaluator import Evaluator
from habitus.checklists.queries import Query, QuerySet, load_queries
from habitus.checklists.recommender import Recommender, recommendation_id

__all__ = [
    "Evaluator",
    "Query",
    "QuerySet",
    "Recommender",
    "load_queries",
    "recommendation_id",
]
