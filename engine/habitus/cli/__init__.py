"""The ``habitus`` command."""


def main() -> None:
    """Run the command line."""
