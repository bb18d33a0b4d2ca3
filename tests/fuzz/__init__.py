"""A fuzzer: random descriptors beside the oracles, and damaged model files.

``python -m tests.fuzz --minutes 1`` runs it; see ``--help``.
"""
