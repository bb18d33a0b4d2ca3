"""A fuzzer: it compares random descriptors with the oracles, and damages model files.

``python -m tests.fuzz --minutes 1`` runs it, and ``--help`` lists its options.
"""
