"""Losses per example, safe for logits of any size. Heads weight and reduce them."""

from estimator_heads.losses.cross_entropy import sigmoid_cross_entropy as sigmoid_cross_entropy
from estimator_heads.losses.cross_entropy import softmax_cross_entropy as softmax_cross_entropy
from estimator_heads.losses.options import LossOptions as LossOptions
from estimator_heads.losses.ranking import listwise_softmax as listwise_softmax
from estimator_heads.losses.ranking import pairwise_logistic as pairwise_logistic
from estimator_heads.losses.regression import log_poisson as log_poisson
from estimator_heads.losses.regression import squared_error as squared_error
from estimator_heads.losses.retrieval import in_batch_scores as in_batch_scores
from estimator_heads.losses.retrieval import in_batch_softmax as in_batch_softmax
