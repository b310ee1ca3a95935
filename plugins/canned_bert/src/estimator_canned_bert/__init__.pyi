"""The public names, typed; `__init__.py` imports each when it is first used."""

from estimator_canned_bert.classifier import BertClassifier as BertClassifier
from estimator_canned_bert.config import BertConfig as BertConfig
from estimator_canned_bert.early_stop import StopWithoutImprovement as StopWithoutImprovement
from estimator_canned_bert.encoder import Encoded as Encoded
from estimator_canned_bert.encoder import EncoderOptions as EncoderOptions
from estimator_canned_bert.encoder import encode as encode
from estimator_canned_bert.encoder import encoder_shapes as encoder_shapes
from estimator_canned_bert.encoder.model import BertModel as BertModel
from estimator_canned_bert.encoder.partition import fully_sharded_rules as fully_sharded_rules
from estimator_canned_bert.encoder.partition import tensor_parallel_rules as tensor_parallel_rules
from estimator_canned_bert.lora import LoraConfig as LoraConfig
from estimator_canned_bert.lora import merge_lora as merge_lora
from estimator_canned_bert.model_fn import bert_model_fn_builder as bert_model_fn_builder
from estimator_canned_bert.optimization import Optimization as Optimization
from estimator_canned_bert.optimization import create_optimizer as create_optimizer
from estimator_canned_bert.optimization import warmup_linear_decay as warmup_linear_decay
from estimator_canned_bert.tasks import Classification as Classification
from estimator_canned_bert.tasks import Regression as Regression
from estimator_canned_bert.tasks import Task as Task
from estimator_canned_bert.text import BertTokens as BertTokens
from estimator_canned_bert.text import ClassifierData as ClassifierData
from estimator_canned_bert.text import Split as Split
from estimator_canned_bert.text import Tokenizer as Tokenizer
from estimator_canned_bert.text import build_vocabulary as build_vocabulary
from estimator_canned_bert.weights import get_assignment_map_from_checkpoint as get_assignment_map_from_checkpoint
from estimator_canned_bert.weights import init_from_pretrained as init_from_pretrained
from estimator_canned_bert.weights import read_checkpoint as read_checkpoint
from estimator_canned_bert.weights import save_pretrained as save_pretrained
from estimator_canned_bert.weights.transformers import TransformersCheckpoint as TransformersCheckpoint

__version__: str
