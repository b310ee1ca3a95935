"""Host transforms of heads: strings to ids on the way in, ids to strings on the way out."""

from estimator_heads.transforms.class_names import ClassNames as ClassNames
from estimator_heads.transforms.label_ids import LabelIds as LabelIds
from estimator_heads.transforms.multi_hot import MultiHotLabels as MultiHotLabels
