"""Runs parts of CPython's own test suite and says how they went; stays until its counters have been read."""

import sys
import unittest


def main():
    names = sys.argv[1:]
    suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    result = unittest.TextTestRunner(stream=sys.stderr).run(suite)
    print("run", result.testsRun)
    for kind in "failures", "errors", "skipped":
        for test, _ in getattr(result, kind):
            print(kind, test.id())
    print("end", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
