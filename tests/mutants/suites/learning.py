"""Faults in heads, models, adapters and initial values."""

from tests.mutants.suites.faulty import faults, sound, template

HEAD, MODEL, ADAPTER, INITIAL = (template(kind) for kind in ("head", "model", "adapter", "initial_values"))
AFFINE = "TestAffineAdapter"

MUTANTS = (
    *faults(
        "head",
        HEAD,
        loss_ignores_the_mask=("return weights if mask is None else weights * mask", "return weights"),
        loss_ignores_weights=("if self.weight_column is not None:", "if self.weight_column is None:"),
        divides_by_all_rows=("jnp.maximum(jnp.sum(weights), 1e-9)", "losses.size"),
        drops_regularization=(" + sum(regularization_losses or [])\n\n    def pred", "\n\n    def pred"),
        predictions_are_inverted=('{"predictions": jnp.asarray(logits)}', '{"predictions": -jnp.asarray(logits)}'),
        predictions_see_the_batch=(
            '{"predictions": jnp.asarray(logits)}',
            '{"predictions": jnp.asarray(logits) - jnp.mean(logits)}',
        ),
        keys_select_nothing=(
            "for key in (everything if keys is None else keys)",
            "for key in (everything if keys is None else ())",
        ),
        metric_without_the_name=('f"average_loss{suffix}"', '"average_loss"'),
        metric_of_the_batch=(
            "ec.metrics.mean(losses, self._weights(features, losses))",
            "ec.metrics.mean(losses.mean())",
        ),
        drops_the_train_op_fn=(
            "train_op_fn(loss) if train_op_fn is not None else optimizer",
            "optimizer or optax.sgd(0.1)",
        ),
        spec_drops_regularization=(
            "self.loss(labels, logits, features, mode, regularization_losses)",
            "self.loss(labels, logits, features, mode)",
        ),
        hides_nan=("return optax.huber_loss(logits[:, 0]", "return optax.huber_loss(jnp.nan_to_num(logits[:, 0])"),
        logarithm_is_unstable=(
            "return optax.huber_loss(logits[:, 0], labels, delta=self.delta)",
            "return jnp.log(jnp.cosh(logits[:, 0] - labels))",
        ),
        takes_any_logits=("if logits.shape != (len(labels), 1):", "if False:"),
        gradient_is_cut=("return optax.huber_loss(logits[:, 0]", "return optax.huber_loss(jnp.round(logits[:, 0])"),
        cannot_be_served=("predictions=predictions, export_outputs=outputs)", "predictions=predictions)"),
        weights_are_squared=(".reshape(-1)\n        mask =", ".reshape(-1) ** 2\n        mask ="),
        draws_from_the_global_generator=(
            "return optax.huber_loss(logits[:, 0]",
            "__import__('random').random()\n        return optax.huber_loss(logits[:, 0]",
        ),
        loss_of_a_hash=(
            "return jnp.sum(weights * losses) /",
            'return (1 + hash("loss") % 1000) * jnp.sum(weights * losses) /',
        ),
    ),
    *faults(
        "model",
        MODEL,
        never_learns=('optax.adam(params["learning_rate"])', "optax.sgd(0.0)"),
        predicts_one_number=("y = _dense(hidden, 1)[:, 0]", "y = _dense(hidden, 1)[:, 0].mean() + 0 * x[:, 0]"),
        metric_of_the_batch=("ec.metrics.mean(losses)", "ec.metrics.mean(losses.mean())"),
        climbs=('optax.adam(params["learning_rate"])', 'optax.adam(-params["learning_rate"])'),
        sees_the_batch=(
            'x = features[params["feature"]]',
            'x = features[params["feature"]]\n    x = x - x.mean(axis=0)',
        ),
        sorts_its_predictions=('{"predictions": y}', '{"predictions": jax.numpy.sort(y)}'),
        ignores_its_config=("super().__init__(_model_fn, config=config,", "super().__init__(_model_fn, config=None,"),
        draws_its_own_weights=(
            "jax.nn.initializers.lecun_normal())",
            "lambda *of: __import__('numpy').random.default_rng().normal(size=of[1]).astype('float32'))",
        ),
        ignores_its_features=("hidden = jax.nn.relu(_dense(x,", "hidden = jax.nn.relu(_dense(0 * x,"),
        has_a_metric_without_a_number=("ec.metrics.mean(losses)", "ec.metrics.mean(jax.numpy.log(-1 - losses))"),
        needs_labels_to_predict=('predictions = {"predictions": y}', 'predictions = {"predictions": y + 0 * labels}'),
        loss_of_the_labels=("losses = (y - labels) ** 2", "losses = (labels - labels) ** 2 + 0 * y"),
        seeds_the_generator=(
            "losses = (y - labels) ** 2",
            "losses = (y - labels) ** 2\n    __import__('random').seed(1)",
        ),
        loss_counts_padding=("losses.mean() if real is None else", "losses.mean() if True else"),
        weights_of_a_hash=(
            "jax.nn.initializers.lecun_normal())",
            'lambda _, *of: jax.nn.initializers.lecun_normal()(jax.random.key(hash("kernel") % 1000), *of))',
        ),
    ),
    *faults(
        "adapter",
        ADAPTER,
        handles_everything=("return isinstance(module, sys.modules[self.library].Dense)", "return True"),
        writes_back_without_a_look=("if given != expected:", "if False:"),
        ignores_the_bias=("return lambda x: x @ kernel + bias", "return lambda x: x @ kernel"),
        uses_its_own_values=("return lambda x: x @ kernel + bias", "return lambda x: x @ layer.kernel + bias"),
        writes_nothing_back=("setattr(module, name, np.array(values[name]))", "pass"),
        forgets_a_parameter=(
            'kernel = binding.variable("kernel", layer.kernel.shape, layer.kernel.dtype, layer.kernel)',
            "kernel = layer.kernel",
        ),
        rounds=("return lambda x: x @ kernel + bias", "return lambda x: x @ kernel.round(1) + bias"),
        changes_the_module=("layer = binding.module", "layer = binding.module\n        layer.kernel += 1"),
        seeds_the_generator=("layer = binding.module", "layer = binding.module\n        np.random.seed(1)"),
        values_of_a_hash=(
            "layer.kernel.dtype, layer.kernel)",
            'layer.kernel.dtype, layer.kernel + hash("kernel") % 1000)',
        ),
    ),
    *faults(
        "adapter",
        sound("adapter"),
        AFFINE,
        counts_in_evaluation=('if binding.scope.mode == "train":', "if True:"),
        state_of_another_shape=('binding.write("calls", calls + 1)', 'binding.write("calls", (calls + 1)[None])'),
    ),
    *faults(
        "initial_values",
        INITIAL,
        returns_another_shape=("value=value, origin", "value=value[None], origin"),
        returns_what_nobody_asked_for=("for path in specs if path in arrays}", "for path in arrays}"),
        fails_for_unknown_names=("for path in specs if path in arrays}", "for path in specs}"),
        does_not_say_where_from=("value=value, origin=self.path", 'value=value, origin=""'),
        returns_another_kind_of_number=("value=value, origin", "value=value.astype(int), origin"),
        returns_more_at_each_call=(
            "value=value, origin",
            "value=value + len(vars(self).setdefault('calls', []).append(1) or self.calls), origin",
        ),
        zeros_for_unknown_names=(
            "{path: arrays[path] for path in specs if path in arrays}",
            "{path: arrays[path] if path in arrays else np.zeros(specs[path].shape, np.float32) for path in specs}",
        ),
        has_another_method=("def initial_values(", "def values("),
        returns_noise=("value=value, origin", "value=value + np.random.default_rng().normal(), origin"),
        seeds_the_generator=("value=value, origin", "value=value + 0 * (np.random.seed(1) or 1), origin"),
        values_of_a_hash=("value=value, origin", "value=value + hash(path) % 1000, origin"),
    ),
)
