"""Components of contract 1.0. Frozen: see README.md."""

from estimator_core.hooks import Hook as BaseHook


class Hook(BaseHook):
    name = "frozen"

    def __init__(self, text="default"):
        self.text = text
        self.calls = []

    def begin(self, run):
        run.follow("loss")
        self.calls.append("begin")

    def after_create(self, run):
        self.calls.append("after_create")

    def next_step(self, step):
        return step + 2

    def before_step(self, run, step):
        self.calls.append(("before", step))

    def after_step(self, run, step, out):
        self.calls.append(("after", step, float(out["loss"]), len(out.all("loss")), list(out.steps)))

    def on_values(self, run, steps, values):
        self.calls.append(("values", len(steps), values["loss"].shape))

    def state(self):
        return {"calls": len(self.calls)}

    def restore(self, state):
        self.calls.append(("restored", state["calls"]))

    def end(self, run):
        self.calls.append("end")


class Head:
    pass


class Exporter:
    pass


class Format:
    pass


class Backend:
    pass


class Model:
    pass


class Adapter:
    pass


class Input:
    pass


class Transform:
    pass
