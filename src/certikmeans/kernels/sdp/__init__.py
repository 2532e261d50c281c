"""Cuts of the semidefinite relaxation."""
