"""Habitus: a simulation engine for persona-conversation benchmarks.

A culture is values and norms in YAML; personas are drawn from it, talk with an assistant over
many sessions, and models under test are measured by how well their answers fit the person.
See ``ARCHITECTURE.md`` for the layers and ``README.md`` for the commands.
"""

__version__ = "0.1.0"
