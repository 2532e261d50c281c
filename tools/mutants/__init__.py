"""Mutation tests of the trusted core: small changes that make a claim false, and their tests."""
