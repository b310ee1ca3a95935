"""Prints the word given. Frozen: see README.md."""


def configure(parser):
    parser.add_argument("word")


def run(args):
    print("frozen says", args.word)
    return 0
