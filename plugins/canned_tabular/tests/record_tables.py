"""Records the canned estimators on one table: weights, metrics and predictions after 50 steps."""

import sys

import table_cases
import tf_tables


def main():
    every = table_cases.cases()
    made = {}
    for name in sys.argv[1:] or every:
        made[name] = tf_tables.run(every[name])
        print(name, made[name]["metrics"]["loss"], file=sys.stderr)
    if len(made) == len(every):
        tf_tables.write(__file__, made, "table_cases.py")


if __name__ == "__main__":
    main()
