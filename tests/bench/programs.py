# SPDX-License-Identifier: LGPL-2.1-or-later
"""The benchmarks' own programs in C, compiled when they are needed."""

import os
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent


def compiled(name, directory):
    """The path of the program, in a directory that the caller removes."""
    program = pathlib.Path(directory) / name
    subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread",
                    HERE / f"{name}.c", "-o", program], check=True)
    return program
