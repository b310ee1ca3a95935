"""A sound export format for one model, that of the suite: variables and names in files with checksums."""

import hashlib
import json
import shutil
from types import SimpleNamespace

import numpy as np

from estimator_core.errors import ExportError
from estimator_core.export import Feature


class SoundFormat:
    name = "sound"

    def write(self, request, directory):
        arrays = dict(request.variables)
        (directory / "variables.json").write_text(json.dumps({name: value.tolist() for name, value in arrays.items()}))
        for name, path in request.assets.items():
            (directory / "assets" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, directory / "assets" / name)
        manifest = {
            "signatures": {
                name: {
                    kind: {key: [feature.shape, feature.dtype] for key, feature in getattr(signature, kind).items()}
                    for kind in ("inputs", "outputs")
                }
                for name, signature in request.signatures.items()
            },
            "provenance": request.provenance,
            "global_step": request.global_step,
            "checksum": hashlib.sha256((directory / "variables.json").read_bytes()).hexdigest(),
        }
        (directory / "sound.json").write_text(json.dumps(manifest))

    def recognizes(self, directory):
        return (directory / "sound.json").is_file()

    def load(self, directory):
        try:
            manifest = json.loads((directory / "sound.json").read_text())
            text = (directory / "variables.json").read_bytes()
        except (OSError, ValueError) as error:
            raise ExportError(f"{directory} is damaged: {error}") from error
        if hashlib.sha256(text).hexdigest() != manifest["checksum"]:
            raise ExportError(f"{directory}: variables.json is damaged")
        variables = {name: np.array(value, np.float32) for name, value in json.loads(text).items()}
        signatures = {
            name: Signature(name, variables, *(self.features(form[kind]) for kind in ("inputs", "outputs")))
            for name, form in manifest["signatures"].items()
        }
        return SimpleNamespace(signatures=signatures, raw_signatures=signatures, manifest=manifest)

    def features(self, forms):
        return {name: Feature(tuple(shape), dtype) for name, (shape, dtype) in forms.items()}


class Signature:
    def __init__(self, name, variables, inputs, outputs):
        self.name, self.variables, self.inputs, self.outputs = name, variables, inputs, outputs

    def __call__(self, **arrays):
        if set(arrays) != set(self.inputs):
            raise TypeError(f"inputs {set(arrays) ^ set(self.inputs)} are missing or unknown")
        if np.shape(arrays["x"])[1:] != (3,):
            raise ValueError(f"x has shape {np.shape(arrays['x'])}")
        scores = arrays["x"] @ self.variables["dense/kernel"] + self.variables["dense/bias"]
        return {"scores": np.tanh(scores) if self.name == "squashed" else scores, "next": arrays["ids"] + 1}
