"""``python -m certikmeans``."""

from certikmeans.cli import main

if __name__ == "__main__":
    main()
