"""Precision and recall by threshold, for the page PR CURVES of TensorBoard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from estimator_heads.metrics.thresholds import ThresholdCounts


def pr_curve_event(tag: str, counts: ThresholdCounts) -> Any:
    """Returns an event with the counts at equally spaced thresholds from 0 to 1.

    Args:
        tag: the name of the curve.
        counts: the counts, arrays [thresholds].

    Source: `tensorboard/plugins/pr_curve/summary.py`.
    """
    from tensorboardX.proto.event_pb2 import Event  # pyright: ignore[reportAttributeAccessIssue] # made by protobuf
    from tensorboardX.proto.plugin_pr_curve_pb2 import PrCurvePluginData  # pyright: ignore[reportAttributeAccessIssue] # made by protobuf
    from tensorboardX.proto.summary_pb2 import Summary, SummaryMetadata  # pyright: ignore[reportAttributeAccessIssue] # made by protobuf
    from tensorboardX.proto.tensor_pb2 import TensorProto  # pyright: ignore[reportAttributeAccessIssue] # made by protobuf
    from tensorboardX.proto.tensor_shape_pb2 import TensorShapeProto  # pyright: ignore[reportAttributeAccessIssue] # made by protobuf

    rows = np.stack(
        [
            counts.true_positives,
            counts.false_positives,
            counts.true_negatives,
            counts.false_negatives,
            np.nan_to_num(counts.precision),
            np.nan_to_num(counts.recall),
        ]
    ).astype(np.float32)
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in rows.shape])
    tensor = TensorProto(dtype="DT_FLOAT", float_val=rows.ravel().tolist(), tensor_shape=shape)
    content = PrCurvePluginData(version=0, num_thresholds=rows.shape[1]).SerializeToString()
    data = SummaryMetadata.PluginData(plugin_name="pr_curves", content=content)
    value = Summary.Value(tag=tag, metadata=SummaryMetadata(plugin_data=data), tensor=tensor)
    return Event(summary=Summary(value=[value]))
