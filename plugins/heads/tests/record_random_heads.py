"""Records random head cases over heads, weights, vocabularies, thresholds, reductions, shapes and numbers of batches.

Each head and option is met at least ``LEAST`` times; the counts are checked before anything is written.
"""

import collections

import numpy as np
import tf_heads

LEAST = 20
WORDS = ["aang", "iroh", "katara", "sokka", "toph", "zuko"]


class Draw:
    """The random choices of one case, remembered as options so that they can be counted."""

    def __init__(self, rng, rank=None):
        self.rng = rng
        self.rank = rank  # of the logits; None: free to choose
        self.nested = rank is not None  # part of another head, which reads the reduction, the name and some features
        self.options = set()

    def option(self, name, probability=0.4):
        if self.rng.random() >= probability:
            return False
        self.options.add(name)
        return True

    def choose(self, name, values):
        value = values[self.rng.integers(len(values))]
        self.options.add(f"{name}={value}")
        return value

    def numbers(self, shape, low, high, digits=3):
        return np.round(self.rng.uniform(low, high, shape), digits)

    def logits(self, shape, scale):
        spread = {"small": 2.0, "tied": 2.0, "large": 60.0}[scale]
        return np.round(self.rng.normal(0, spread, shape), 0 if scale == "tied" else 3)

    def integers(self, shape, high):
        return self.rng.integers(0, high, shape)


def leading_shape(draw, rank):
    """[batch] or [batch, time]; never empty."""
    return [int(draw.rng.integers(1, 6))] + ([int(draw.rng.integers(1, 4))] if rank == 3 else [])


def common(draw, arguments, scales=("small", "tied", "large")):
    """Arguments that every head has, and what holds for all batches."""
    if not draw.nested:
        if draw.option("sum", 0.35):
            arguments["loss_reduction"] = "sum"
        if draw.option("name", 0.3):
            arguments["name"] = "nm"
    plan = {"rank": draw.rank or draw.choose("rank", [2, 2, 3]), "weights": None, "scale": draw.choose("scale", scales)}
    if draw.option("weights", 0.5):
        arguments["weight_column"] = "w"
        plan["weights"] = draw.choose("weights", ["flat", "column"])
    plan["flat_labels"] = draw.option("flat_labels", 0.3)
    return plan


def weights(draw, plan, leading, dimension=1):
    """Weights of shape ``leading`` ("flat"), ``leading + [1]`` ("column") or one for each output; some are zero."""
    shape = {"flat": leading, "column": [*leading, 1], "each": [*leading, dimension]}[plan["weights"]]
    drawn = draw.numbers(shape, 0.1, 3.0, 2)
    return np.where(draw.rng.random(shape) < draw.rng.choice([0.0, 0.3, 1.0], p=[0.6, 0.35, 0.05]), 0.0, drawn)


def features(draw, plan, leading, dimension=1):
    found = {"x": np.zeros(leading)}
    if plan["weights"]:
        found["w"] = weights(draw, plan, leading, dimension)
    if plan.get("scale_feature"):
        found["scale"] = draw.numbers([*leading, 1], 0.1, 2.0)
    return found


def shaped(labels, plan):
    """Labels without their last axis where the plan says so and it is of size one."""
    return labels[..., 0] if plan["flat_labels"] and labels.shape[-1] == 1 else labels


def loss_fn(draw, plan, arguments, names):
    if not draw.option("loss_fn", 0.45):
        return
    arguments["loss_fn"] = draw.choose("loss_fn", names[:1] if draw.nested else names)
    plan["scale_feature"] = arguments["loss_fn"] == "scaled_absolute"


def thresholds(draw, arguments):
    if draw.option("thresholds"):
        count = int(draw.rng.integers(1, 4))
        arguments["thresholds"] = sorted(
            draw.rng.choice([0.1, 0.25, 0.3, 0.5, 0.75, 0.9], count, replace=False).tolist()
        )


def binary(draw):
    arguments = {}
    plan = common(draw, arguments)
    thresholds(draw, arguments)
    soft = False
    if draw.option("vocabulary"):
        arguments["label_vocabulary"] = draw.rng.choice(WORDS, 2, replace=False).tolist()
    else:
        soft = draw.option("soft_labels", 0.4)
    loss_fn(draw, plan, arguments, ["absolute", "scaled_absolute"])

    def batch(leading):
        labels = draw.numbers([*leading, 1], 0, 1, 2) if soft else draw.integers([*leading, 1], 2)
        if "label_vocabulary" in arguments:
            labels = np.array(arguments["label_vocabulary"])[labels]
        return draw.logits([*leading, 1], plan["scale"]), shaped(labels, plan), features(draw, plan, leading)

    return arguments, plan, batch


def multi_class(draw):
    classes = draw.choose("classes", [3, 4, 6])
    arguments = {"n_classes": classes}
    plan = common(draw, arguments)
    if draw.option("vocabulary"):
        arguments["label_vocabulary"] = draw.rng.permutation(WORDS)[:classes].tolist()
    loss_fn(draw, plan, arguments, ["label_times_mean_logit"])

    def batch(leading):
        labels = draw.integers([*leading, 1], classes)
        if "label_vocabulary" in arguments:
            labels = np.array(arguments["label_vocabulary"])[labels]
        return draw.logits([*leading, classes], plan["scale"]), shaped(labels, plan), features(draw, plan, leading)

    return arguments, plan, batch


def multi_label(draw):
    classes = draw.choose("classes", [2, 3, 5])
    arguments = {"n_classes": classes}
    plan = common(draw, arguments)
    thresholds(draw, arguments)
    plan["flat_labels"] = False
    vocabulary = draw.rng.permutation(WORDS)[:classes] if draw.option("vocabulary") else None
    if vocabulary is not None:
        arguments["label_vocabulary"] = vocabulary.tolist()
    if draw.option("classes_for_class_based_metrics"):
        chosen = draw.rng.permutation(classes)[: int(draw.rng.integers(1, classes + 1))]
        by_name = vocabulary is not None and draw.option("classes_by_name", 0.8)
        arguments["classes_for_class_based_metrics"] = (vocabulary[chosen] if by_name else chosen).tolist()
    loss_fn(draw, plan, arguments, ["mean_absolute"])
    sparse = plan["rank"] == 2 and (vocabulary is not None or draw.option("sparse_labels", 0.5))
    if vocabulary is not None and not sparse:
        arguments.pop("label_vocabulary")  # text labels come as a SparseTensor, of rank 2
        arguments.pop("classes_for_class_based_metrics", None)

    def batch(leading):
        labels = draw.integers([*leading, classes], 2)
        if sparse:
            rows, ids = np.nonzero(labels)
            position = np.concatenate([np.arange(np.sum(rows == row)) for row in range(leading[0])])
            values = ids if vocabulary is None else vocabulary[ids]
            labels = {
                "sparse_indices": np.stack([rows, position], 1) if len(rows) else [],
                "values": values,
                "dense_shape": [leading[0], max(1, int(labels.sum(1).max()))],
            }
            if not len(rows):  # an empty array has no element to tell its type by
                labels = np.zeros([*leading, classes], int)
        return draw.logits([*leading, classes], plan["scale"]), labels, features(draw, plan, leading)

    return arguments, plan, batch


def regression(draw, dimensions=(1, 2, 3), low=-3.0, high=3.0, scales=("small", "tied", "large")):
    dimension = draw.choose("dimension", list(dimensions))
    arguments = {} if dimension == 1 else {"label_dimension": dimension}
    plan = common(draw, arguments, scales)
    if plan["weights"] and dimension > 1 and draw.option("weights_per_output", 0.6):
        plan["weights"] = "each"

    def batch(leading):
        logits = draw.logits([*leading, dimension], plan["scale"])
        labels = draw.numbers([*leading, dimension], low, high, 2)
        return logits, shaped(labels, plan), features(draw, plan, leading, dimension)

    return arguments, plan, batch


def plain_regression(draw):
    arguments, plan, batch = regression(draw)
    loss_fn(draw, plan, arguments, ["absolute"])
    if draw.option("inverse_link_fn"):
        arguments["inverse_link_fn"] = draw.choose("inverse_link_fn", ["times_10", "exp"])
    return arguments, plan, batch


def logistic(draw):
    return regression(draw, dimensions=(1,), low=0.0, high=1.0)


def poisson(draw):
    arguments, plan, batch = regression(draw, low=0.0, high=6.0, scales=("small", "tied"))
    if draw.option("without_constant"):
        arguments["compute_full_loss"] = False
    return arguments, plan, batch


def multi_head(draw):
    count = draw.choose("heads", [2, 3])
    shared = {"loss_reduction": "sum"} if draw.option("sum", 0.35) else {}
    rank = draw.choose("rank", [2, 2, 3])
    parts = []
    for place in range(count):
        kind = draw.choose("part", KINDS[:6])
        inner = Draw(draw.rng, rank)
        arguments, plan, batch = GENERATORS[kind](inner)
        draw.options |= {option for option in inner.options if option in ("weights", "vocabulary", "thresholds")}
        arguments.update(shared, name=f"head{place + 1}")
        if plan["weights"]:
            arguments["weight_column"] = f"w{place + 1}"
        parts.append((kind, arguments, plan, batch))
    heads = [{"class": kind, "arguments": arguments} for kind, arguments, _, _ in parts]
    whole = {"heads": heads}
    if draw.option("head_weights", 0.5):
        whole["head_weights"] = draw.numbers([count], 0.1, 3.0, 1).tolist()
    joined = draw.option("joined_logits", 0.4)

    def batch(leading):
        logits, labels, given = {}, {}, {"x": np.zeros(leading)}
        for _, arguments, _, part in parts:
            name = arguments["name"]
            logits[name], labels[name], found = part(leading)
            if "w" in found:
                given[arguments["weight_column"]] = found["w"]
        return np.concatenate(list(logits.values()), -1) if joined else logits, labels, given

    return whole, {"rank": rank}, batch


SEQUENTIAL = ["BinaryClassHead", "BinaryClassHead", "MultiClassHead", "RegressionHead", "PoissonRegressionHead"]


def sequential(draw):
    kind = draw.choose("static", SEQUENTIAL)
    inner = Draw(draw.rng, 3)
    arguments, plan, part = GENERATORS[kind](inner)
    draw.options |= {option for option in inner.options if option in ("weights", "vocabulary", "thresholds", "loss_fn")}
    if draw.option("sum", 0.35):
        arguments["loss_reduction"] = "sum"
    if draw.option("name", 0.3):
        arguments["name"] = "nm"
    plan["flat_labels"] = False
    whole = {"static_head": {"class": kind, "arguments": arguments}}
    mask_name = "sequence_length_mask"
    if draw.option("mask_name"):
        mask_name = whole["sequence_length_mask"] = "mask"
    if plan["weights"]:
        whole["feature_columns"] = ["w"]

    def batch(leading):
        logits, labels, given = part(leading)
        lengths = draw.rng.integers(1, leading[1] + 1, leading[0])
        given[mask_name] = np.arange(leading[1]) < lengths[:, None]
        return logits, labels, given

    return whole, plan, batch


GENERATORS = {
    "BinaryClassHead": binary,
    "MultiClassHead": multi_class,
    "MultiLabelHead": multi_label,
    "RegressionHead": plain_regression,
    "LogisticRegressionHead": logistic,
    "PoissonRegressionHead": poisson,
    "MultiHead": multi_head,
    "SequentialHeadWrapper": sequential,
}
KINDS = list(GENERATORS)
COUNTS = dict.fromkeys(KINDS, 110) | {"BinaryClassHead": 120, "MultiLabelHead": 150, "SequentialHeadWrapper": 130}


def make(kind, index):
    """The case number ``index`` of a head, without what is expected, and the options it has."""
    draw = Draw(np.random.default_rng([tf_heads.SEED, KINDS.index(kind), index]))
    arguments, plan, batch = GENERATORS[kind](draw)
    batches = []
    for _ in range(draw.choose("batches", [1, 2, 3])):
        logits, labels, given = batch(leading_shape(draw, plan["rank"]))
        batches.append({"logits": logits, "labels": labels, "features": given})
    case = {"head": {"class": kind, "arguments": arguments}, "batches": batches}
    if draw.option("regularization", 0.3):
        case["regularization_losses"] = draw.numbers([int(draw.rng.integers(1, 3))], 0.1, 2.0, 2)
    return tf_heads.plain(case), draw.options


def main():
    cases, met = {}, collections.Counter()
    for kind, count in COUNTS.items():
        for index in range(count):
            case, options = make(kind, index)
            met.update(f"{kind} {option}" for option in options)
            cases[f"{kind}_{index:03}"] = {"options": sorted(options), **case}
    rare = {option: count for option, count in met.items() if count < LEAST}
    if rare:
        raise SystemExit(f"options met fewer than {LEAST} times: {rare}")
    cases = {name: tf_heads.observe(case) for name, case in cases.items()}
    tf_heads.write(__file__, cases)


if __name__ == "__main__":
    main()
