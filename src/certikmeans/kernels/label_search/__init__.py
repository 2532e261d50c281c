"""Local search for labels under any mix of constraints. Compiled."""
