"""`from estimator_canned_bert import *` imports the public names."""

import estimator_canned_bert


def test_a_star_imports_every_public_name() -> None:
    names: dict[str, object] = {}
    exec("from estimator_canned_bert import *", names)
    assert {"BertClassifier", "BertConfig", "encode"} <= names.keys()
    assert set(estimator_canned_bert.__all__) <= names.keys()
