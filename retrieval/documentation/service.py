"""Where documentation comes from and how it is ranked, as the environment has it."""

from __future__ import annotations

from dataclasses import dataclass, field

from klerai.env import BadSetting, Environment


@dataclass(frozen=True, slots=True)
class Context7:
    """`version` is v2, or v1 as it was; `metric` is cosine or euclidean; `reranks` says whether a model ranks."""

    base_url: str
    key: str = field(default="", repr=False)
    version: str = "v2"
    metric: str = "cosine"
    reranks: bool = True


def context7_settings(env: Environment) -> Context7:
    """Raises BadSetting."""
    key = env.secret("CONTEXT7_API_KEY")
    if not key.isascii() or (key and not key.isprintable()):
        raise BadSetting("CONTEXT7_API_KEY", "has characters in it that no key has.")
    return Context7(
        base_url=env.url("CONTEXT7_BASE_URL", "https://context7.com/api"),
        key=key,
        version=env.choice("CONTEXT7_API_VERSION", "v2", ("v2", "v1")),
        metric=env.choice("KLERAI_DOCS_METRIC", "cosine", ("cosine", "euclidean")),
        reranks=env.flag("KLERAI_DOCS_RERANK", True),
    )
