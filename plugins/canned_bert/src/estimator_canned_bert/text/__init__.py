"""Text inputs: files, tokens, batches, and the host transform for exports."""

from estimator_canned_bert.text.data import ClassifierData, Split
from estimator_canned_bert.text.tokenizer import Tokenizer
from estimator_canned_bert.text.transform import BertTokens
from estimator_canned_bert.text.vocabulary import build_vocabulary

__all__ = ["BertTokens", "ClassifierData", "Split", "Tokenizer", "build_vocabulary"]
