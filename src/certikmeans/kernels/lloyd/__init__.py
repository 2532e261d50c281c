"""Local search: starting centres, Lloyd steps and runs, moves of chains."""
