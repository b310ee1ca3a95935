"""Feature columns: the features that a model reads, and their form. Columns are records, compared by value."""

from estimator_canned_tabular.columns.contract import CategoricalColumn as CategoricalColumn
from estimator_canned_tabular.columns.contract import DenseColumn as DenseColumn
from estimator_canned_tabular.columns.contract import FeatureColumn as FeatureColumn
from estimator_canned_tabular.columns.crossed import crossed_column as crossed_column
from estimator_canned_tabular.columns.embedding import embedding_column as embedding_column
from estimator_canned_tabular.columns.embedding import shared_embeddings as shared_embeddings
from estimator_canned_tabular.columns.hashed import (
    categorical_column_with_hash_bucket as categorical_column_with_hash_bucket,
)
from estimator_canned_tabular.columns.identity import (
    categorical_column_with_identity as categorical_column_with_identity,
)
from estimator_canned_tabular.columns.indicator import indicator_column as indicator_column
from estimator_canned_tabular.columns.numeric import bucketized_column as bucketized_column
from estimator_canned_tabular.columns.numeric import numeric_column as numeric_column
from estimator_canned_tabular.columns.sequence import (
    sequence_categorical_column_with_hash_bucket as sequence_categorical_column_with_hash_bucket,
)
from estimator_canned_tabular.columns.sequence import (
    sequence_categorical_column_with_identity as sequence_categorical_column_with_identity,
)
from estimator_canned_tabular.columns.sequence import (
    sequence_categorical_column_with_vocabulary_file as sequence_categorical_column_with_vocabulary_file,
)
from estimator_canned_tabular.columns.sequence import (
    sequence_categorical_column_with_vocabulary_list as sequence_categorical_column_with_vocabulary_list,
)
from estimator_canned_tabular.columns.sequence import sequence_numeric_column as sequence_numeric_column
from estimator_canned_tabular.columns.vocabulary import (
    categorical_column_with_vocabulary_file as categorical_column_with_vocabulary_file,
)
from estimator_canned_tabular.columns.vocabulary import (
    categorical_column_with_vocabulary_list as categorical_column_with_vocabulary_list,
)
from estimator_canned_tabular.columns.weighted import weighted_categorical_column as weighted_categorical_column
