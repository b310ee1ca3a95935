"""A plugin of a third party that adds a section."""

from estimator_core.plugins import Component

ESTIMATOR_PLUGIN_API = (1, 1)


def estimator_components():
    """Returns one section."""
    return [
        Component(kind="report_section", name="hello", target="acme_section:Hello", summary="Says how many there are.")
    ]


class Hello:
    """Reports the number of results."""

    title, order = "Hello", 15

    def body(self, source):
        return f"<p>{len(source.results)} of them</p>"
