"""Random descriptors and model files, which the library hypothesis draws.

``pytest tests/fuzz --hypothesis-profile=long`` draws more, and other ones each time.
"""
