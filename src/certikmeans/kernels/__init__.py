"""Compiled functions over arrays, nothing else.

They are compiled for the types of their arguments, on a user's first run: so each is called with
one kind of array only. To numba a variable that starts as a literal number has the type of that
literal at first, and what it is passed to is compiled for the literal, then again for int64.
``np.int64(0)`` is no literal.
"""
