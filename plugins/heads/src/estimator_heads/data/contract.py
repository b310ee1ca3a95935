"""`HeadContract`: the data contract of a model with a head."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from estimator_core.errors import CheckpointMismatchError, InputError
from estimator_core.modes import ModeKeys
from estimator_heads.data.export_labels import OfStrings
from estimator_heads.data.label_sets import LabelSets
from estimator_heads.data.learned_facts import VOCABULARIES, declare, digest, recall
from estimator_heads.data.learning import learn_from
from estimator_heads.data.places import Keeping, Parts, Place, RefusalError, absent, found_again
from estimator_heads.data.rule import DataRule

if TYPE_CHECKING:
    from estimator_core.inputs import HostTransform

_LABELS = "labels"  # the name of labels that are one array


def _no_vocabularies() -> Mapping[str, str]:
    return {}


def _nothing_exported(known: Mapping[str, Any]) -> Sequence[HostTransform]:
    return ()


class HeadContract:
    """An `ec.inputs.DataContract` that checks, converts and learns labels by the rules of a head.

    Features have other rules.

    A model_fn has it as its attribute `data_contract`, calls `declare`, and uses `head`, which has the learned classes.

    Args:
        head: the head whose `label_rules` and `weight_rules` apply.
        features: rules by feature name.
        exported: a function from the facts learned about the features to their transforms in an export.
        vocabularies: a function that returns a digest of what the ids of each feature mean. Every checkpoint contains
            these digests and those of class names. A model with other ones is refused.

    Example:
        >>> import estimator_heads as eh
        >>> import numpy as np
        >>> contract = HeadContract(eh.MultiClassHead(3))
        >>> source = [({"x": np.zeros(2)}, np.array([0, 1])), ({"x": np.zeros(2)}, np.array([2, 3]))]
        >>> batches, convert = contract.open(source, mode="eval", memory=Path("none"), check=True)
        >>> [convert(batch) for batch in batches]
        Traceback (most recent call last):
        ...
        estimator_core.errors.InputError: Labels hold 3 in row 1 of batch 2, example 4 of the input: it is not a ...
    """

    def __init__(
        self,
        head: Any,
        features: Mapping[str, DataRule] | None = None,
        exported: Callable[[Mapping[str, Any]], Sequence[HostTransform]] = _nothing_exported,
        vocabularies: Callable[[], Mapping[str, str]] = _no_vocabularies,
    ) -> None:
        self._given = head
        rules: Mapping[str, DataRule] = getattr(head, "label_rules", dict)()
        labels = [Place(key, True, rule) for key, rule in rules.items()]
        weights: Mapping[str, DataRule] = getattr(head, "weight_rules", dict)()
        self._places = (
            *labels,
            *(Place(key, False, rule) for key, rule in (features or {}).items()),
            *(Place(key, False, rule, of_weights=True) for key, rule in weights.items()),
        )
        converted = [place for place in labels if not isinstance(place.rule, LabelSets)]
        self._label_names = {place.key: place.name for place in converted}
        self._exported, self._vocabularies = exported, vocabularies
        self._known: dict[str, Any] = {}
        self._declared = False
        self._settled = False  # whether the facts are final: they were learned, or read from a checkpoint

    @property
    def head(self) -> Any:
        """The head, with the learned class names."""
        learned = {key: self._known[name] for key, name in self._label_names.items() if name in self._known}
        return self._given.with_class_names(learned) if learned else self._given

    def known(self, feature: str) -> Any:
        """Returns the facts that were learned about a feature, or None."""
        return self._known.get(f"features/{feature}")

    def declare(self) -> None:
        """Declares the variable that stores the learned facts. Call it in a model_fn."""
        self._declared = True
        declare(self._known)

    def open(self, source: Any, *, mode: str, memory: Path, check: bool) -> tuple[Any, Callable[[Any], Any] | None]:
        """See `ec.inputs.DataContract`."""
        training, with_labels = mode == ModeKeys.TRAIN, mode != ModeKeys.PREDICT
        if training and not self._declared:  # an earlier training was refused before it began, and its data corrected
            self._known, self._settled = {}, False
        self._recall(memory)
        places = [place for place in self._places if with_labels or place.in_predictions]
        if not places:
            if training:
                self._learn((), whole=False)
            return source, None
        kept = self._keeping(places, check=check)
        if hasattr(source, "mapped"):

            def whole(features: Any, labels: Any) -> tuple[Any, Any]:
                if training:
                    self._learn([(features, labels)], whole=True)
                try:
                    return kept(features, labels, lambda row: f"row {row}")
                except RefusalError as refusal:
                    raise InputError(refusal.told()) from None

            return source.mapped(whole), None
        parts: Parts | None = getattr(source, "parts", None)
        if training:
            self._learn(None if parts is None else (element for element, _ in parts()), whole=False)
        return source, _of_stream(kept, parts)

    def transforms(self, memory: Path) -> Sequence[HostTransform]:
        """See `ec.inputs.DataContract`."""
        self._recall(memory)
        return self._exported(self._known)

    @property
    def label_transforms(self) -> tuple[HostTransform, ...]:
        """The label transforms of heads whose rules do not convert labels."""
        heads: Mapping[str, Any] = getattr(self._given, "heads", {"": self._given})
        return tuple(
            transform
            for name, head in heads.items()
            if name not in self._label_names and hasattr(head, "label_transforms")
            for transform in head.label_transforms(name or _LABELS)
        )

    def exported_labels(self, memory: Path) -> Sequence[HostTransform]:
        """Returns the transforms that convert label strings to ids in exported TRAIN and EVAL signatures.

        Args:
            memory: the model_dir or the checkpoint whose variables contain the learned facts.
        """
        self._recall(memory)
        heads: Mapping[str, Any] = getattr(self.head, "heads", {"": self.head})
        return tuple(
            OfStrings(transform, name or _LABELS)
            for name, head in heads.items()
            if name in self._label_names and hasattr(head, "label_transforms")
            for transform in head.label_transforms(name or _LABELS)
        )

    def _recall(self, memory: Path) -> None:
        if not self._settled and (found := recall(memory)) is not None:
            self._known, self._settled = found, True
        name = self._of_other_ids()
        if name is None:
            return
        if recall(memory) is not None:
            raise CheckpointMismatchError(_other_ids(name))
        if self._declared:  # the traced program contains the facts
            raise CheckpointMismatchError(
                f"{_what_differs(name)} that this Estimator began to train with. model_dir has no checkpoint. Create "
                "the Estimator again to train with the new ones."
            )
        self._known, self._settled = {}, False  # that training was refused before it began

    def _of_other_ids(self) -> str | None:
        """Returns the name of a place whose ids have other meanings than in training, or None."""
        of_labels = {name: digest(self._known[name]) for name in self._label_names.values() if name in self._known}
        trained: Mapping[str, str] = {**of_labels, **self._known.get(VOCABULARIES, {})}
        return next((name for name, now in self._digests().items() if trained.get(name, now) != now), None)

    def _learn(self, elements: Any, *, whole: bool) -> None:
        if not self._settled:
            learned, digests = learn_from(elements, self._places, whole=whole), self._digests()
            self._known, self._settled = {**learned, **({VOCABULARIES: digests} if digests else {})}, True

    def _digests(self) -> dict[str, str]:
        """Returns the digests of all vocabularies that were set, by the names of places."""
        named = ((place.name, getattr(place.rule, "names", None)) for place in self._places if place.of_labels)
        classes = {name: digest(names) for name, names in named if names is not None}
        return {**classes, **{f"features/{key}": made for key, made in self._vocabularies().items()}}

    def _keeping(self, places: Sequence[Place], *, check: bool) -> Keeping:
        """Returns the function that applies all rules to an element."""
        ready = [
            (place, place.key, place.of_labels, place.name, place.rule.passes, place.rule.fault, place.rule.convert)
            for place in places
        ]

        def kept(features: Any, labels: Any, where: Callable[[int], str]) -> tuple[Any, Any]:
            known, lacking = self._known, False
            of_dict = features.__class__ is dict
            for place, key, of_labels, name, passes, fault_of, convert in ready:
                learned = known.get(name) if known else None
                # most batches need no call here: they are a dict of arrays, and an array of labels
                array: Any = (None if key else labels) if of_labels else features.get(key) if of_dict else None
                if array.__class__ is np.ndarray:
                    if check and passes(array, learned):
                        continue
                else:
                    array = place.array(features, labels)
                if array is None:
                    lacking = True
                    continue
                if check and (fault := fault_of(array, learned)) is not None:
                    raise RefusalError(place, fault, where)
                made = convert(array, learned)
                if of_labels:
                    labels = {**labels, key: made} if key else made
                elif made is not array:
                    features = {**features, key: made}
            if check and lacking and (told := absent(places, features)) is not None:
                raise InputError(told)
            return features, labels

        return kept


def _what_differs(name: str) -> str:
    """Returns the beginning of a sentence about ids that do not mean what they meant in training."""
    kind, _, key = name.partition("/")
    if kind == _LABELS:
        return f"The label_vocabulary{f' of head {key!r}' if key else ''} differs from the classes"
    return f"The vocabulary or the boundaries of the feature {key!r} differ from those"


def _other_ids(name: str) -> str:
    """Returns the message about a checkpoint whose ids have other meanings."""
    return (
        f"{_what_differs(name)} that the model in this model_dir was trained with, so its ids have other "
        "meanings. Use the ones of the training, in their order. Or train with the new ones in another model_dir."
    )


def _of_stream(kept: Keeping, parts: Parts | None) -> Callable[[Any], Any]:
    """Returns the function that applies the rules to an element of an input that is read batch by batch."""
    batches = examples = size = 0

    def where(row: int) -> str:
        return f"row {row} of batch {batches}, example {examples - size + row + 1} of the input"

    def convert(element: Any) -> Any:
        nonlocal batches, examples, size
        pair = element.__class__ is tuple or element.__class__ is list
        if pair and len(element) != 2:
            return element  # the core reports the error
        features, labels = element if pair else (element, None)
        size = _rows(features)
        batches, examples = batches + 1, examples + size
        try:
            features, labels = kept(features, labels, where)
        except RefusalError as refusal:
            raise InputError(found_again(refusal, parts, kept)) from None
        return (features, labels) if pair else features

    return convert


def _rows(features: Any) -> int:
    if features.__class__ is dict:
        for leaf in features.values():
            return len(leaf) if leaf.__class__ is np.ndarray and leaf.ndim else _length(leaf)
    named = features.__class__ is dict or isinstance(features, Mapping)
    return _length(next(iter(features.values()), None) if named else features)


def _length(leaf: Any) -> int:
    shape = getattr(leaf, "shape", ())
    return int(shape[0]) if shape else 0
