"""The group problems of the grouped bound, and the master problem of its multipliers."""
