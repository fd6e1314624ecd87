"""Which embedders there are, and which one the environment asks for."""

from __future__ import annotations

from klerai.env import BadSetting, Environment

KINDS = ("voyage", "gemini", "ollama", "wordllama")
KEYS = {"voyage": "VOYAGE_API_KEY", "gemini": "GEMINI_API_KEY"}
VOYAGE_MODELS = (
    "voyage-3-large",
    "voyage-3.5",
    "voyage-3.5-lite",
    "voyage-4-large",
    "voyage-4",
    "voyage-4-lite",
    "voyage-code-3",
)


def chosen_embedder(env: Environment) -> str:
    """KLERAI_EMBEDDER as one of KINDS or `none`. `auto` is the first vendor with a key, else WordLlama.

    Ollama has no key that would tell whether its embedding model was ever pulled, so it is used only when asked for.
    Raises BadSetting when the embedder asked for has no key, or a key is none.
    """
    choice = env.choice("KLERAI_EMBEDDER", "auto", ("auto", *KINDS, "none"))
    for name in KEYS.values():
        if not (key := env.secret(name)).isascii() or (key and not key.isprintable()):
            raise BadSetting(name, "has characters in it that no key has.")
    if choice == "auto":
        return next((kind for kind, key in KEYS.items() if env.secret(key)), "wordllama")
    if choice in KEYS and not env.secret(KEYS[choice]):
        raise BadSetting(KEYS[choice], f"is missing, and KLERAI_EMBEDDER={choice} needs it.")
    return choice
