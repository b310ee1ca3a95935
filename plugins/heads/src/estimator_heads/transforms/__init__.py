"""Host transforms of heads: from strings to ids in inputs, and from ids to strings in outputs."""

from estimator_heads.transforms.class_names import ClassNames as ClassNames
from estimator_heads.transforms.label_ids import LabelIds as LabelIds
from estimator_heads.transforms.multi_hot import MultiHotLabels as MultiHotLabels
