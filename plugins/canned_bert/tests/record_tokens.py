"""Records the tokens of the pure-Python BertTokenizer of transformers 4. Needs transformers 4 and Python 3.11.

    python record_tokens.py [--check]

`recorded/tokens.json` holds, uncased and cased, a hash of the ids of every block of a hundred lines of `text_lines.py`,
and the ids of some lines in full.
"""

import argparse
import hashlib
import json
import sys
import tempfile
import unicodedata
from pathlib import Path

import transformers
from text_lines import BLOCK, LINES, lines, vocabulary

RECORDED = Path(__file__).parent / "recorded" / "tokens.json"


def record():
    found = {"transformers": transformers.__version__, "unicode": unicodedata.unidata_version, "lines": LINES}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "vocab.txt")
        path.write_text("".join(f"{token}\n" for token in vocabulary()), encoding="utf-8")
        for name, lower in (("uncased", True), ("cased", False)):
            tokenizer = transformers.BertTokenizer(str(path), do_lower_case=lower)
            assert not tokenizer.is_fast, "this is the Rust library again"
            ids = [tokenizer.convert_tokens_to_ids(tokenizer.tokenize(line)) for line in lines()]
            blocks = [ids[start : start + BLOCK] for start in range(0, LINES, BLOCK)]
            hashes = [hashlib.sha256(json.dumps(block).encode()).hexdigest()[:16] for block in blocks]
            sample = {str(number): ids[number] for number in range(0, 200, 7) if len(ids[number]) < 40}
            found[name] = {"blocks": hashes, "sample": sample}
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with what is committed")
    if parser.parse_args().check:
        same = all(record()[name] == json.loads(RECORDED.read_text())[name] for name in ("uncased", "cased"))
        print("as recorded" if same else "differs")
        sys.exit(not same)
    RECORDED.write_text(json.dumps(record(), indent=0) + "\n")
