"""``python -m habitus`` is the ``habitus`` command."""

from habitus.cli import main

if __name__ == "__main__":
    main()
