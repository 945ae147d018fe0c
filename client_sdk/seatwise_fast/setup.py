"""The compiled part of the wheel; all else is in pyproject.toml."""

from setuptools import setup

setup(cffi_modules=["build_extension.py:make_builder"])
