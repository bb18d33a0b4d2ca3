"""Lists the programs that we time, and the commands: python -m benchmarks"""

from benchmarks.programs import PROGRAMS

COMMANDS = """\
python -m benchmarks.compare     programs of docs/benchmarks.md beside other libraries
python -m benchmarks.shapes      a scan of shapes beside jax.numpy, in two minutes
python -m benchmarks.run         all cases beside all libraries, for the ledger
python -m benchmarks.scaling     several devices
python -m benchmarks.tracing     the time to trace, lower and compile
python -m benchmarks.plot        the tables of README.md and docs/benchmarks.md
"""

if __name__ == "__main__":
    print(COMMANDS)
    for name, program in PROGRAMS.items():
        print(f"{program.operator:22}{name:45}{' '.join(program.dtypes)}")
