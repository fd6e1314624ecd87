"""GitHub's MCP server, as far as a conversation meets it: its names, its schemas and the shapes of its answers.

By hand: `python -m tests.fakes github_mcp --http 8082`, with any token; `--seconds 4` makes every call take as long.
"""

from __future__ import annotations

import json
import os
from typing import Any

from tests.fakes.mcp_peer import Tell, Wrong, serve

CODE = """from hello.greeting import Greeting


def say_hello(name: str, *, greeting: Greeting) -> str:
    \"\"\"Greet somebody by name, in the language of the greeting.\"\"\"
    if not name.strip():
        raise ValueError("nobody to greet")
    return f"{greeting.word}, {name.strip()}!"


def say_hello_to_all(names: list[str], *, greeting: Greeting) -> list[str]:
    return [say_hello(name, greeting=greeting) for name in names]
"""
FILES = {
    "README.md": "# Hello\n\nHello says hello. Install it with `pip install hello`.\n",
    "src/hello.py": CODE,
}
_TEXT, _NUMBER = {"type": "string"}, {"type": "number"}
_PAGES = {"page": {"type": "number", "minimum": 1}, "perPage": {"type": "number", "minimum": 1, "maximum": 100}}
_REPO = {"owner": {"type": "string", "description": "Repository owner"}, "repo": _TEXT}


def _tool(name: str, about: str, required: str, /, is_read_only: bool = True, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": required.split()}
    hints = {"title": about, **({"readOnlyHint": True} if is_read_only else {"readOnlyHint": False})}
    return {"name": name, "description": about, "inputSchema": schema, "annotations": hints}


_METHODS = {"type": "string", "enum": ["get", "get_comments", "get_sub_issues", "get_parent", "get_labels"]}
_PULL_METHODS = {"type": "string", "enum": ["get", "get_diff", "get_status", "get_files", "get_commits", "get_reviews"]}
_FILES = {
    "type": "array",
    "items": {"type": "object", "properties": {"path": _TEXT, "content": _TEXT}, "required": ["path", "content"]},
}
TOOLS = [
    _tool("get_me", "Get my user profile", ""),
    _tool("search_users", "Search users", "query", query=_TEXT, sort=_TEXT, order=_TEXT, **_PAGES),
    _tool("get_file_contents", "Get file or directory contents", "owner repo", **_REPO, path=_TEXT, ref=_TEXT),
    _tool("list_commits", "List commits", "owner repo", **_REPO, sha=_TEXT, author=_TEXT, **_PAGES),
    _tool("get_commit", "Get commit details", "owner repo sha", **_REPO, sha=_TEXT, **_PAGES),
    _tool("list_branches", "List branches", "owner repo", **_REPO, **_PAGES),
    _tool("search_code", "Search code", "query", query=_TEXT, sort=_TEXT, order=_TEXT, **_PAGES),
    _tool("search_repositories", "Search repositories", "query", query=_TEXT, minimal_output={"type": "boolean"}),
    _tool("list_issues", "List issues", "owner repo", **_REPO, state=_TEXT, labels={"type": "array", "items": _TEXT}),
    _tool("search_issues", "Search issues", "query", query=_TEXT, owner=_TEXT, repo=_TEXT, **_PAGES),
    _tool(
        "issue_read",
        "Get issue details",
        "method owner repo issue_number",
        method=_METHODS,
        **_REPO,
        issue_number=_NUMBER,
        **_PAGES,
    ),
    _tool(
        "pull_request_read",
        "Get pull request details",
        "method owner repo pullNumber",
        method=_PULL_METHODS,
        **_REPO,
        pullNumber=_NUMBER,
        **_PAGES,
    ),
    _tool("list_pull_requests", "List pull requests", "owner repo", **_REPO, state=_TEXT, head=_TEXT, **_PAGES),
    _tool(
        "issue_write",
        "Create or update issue",
        "method owner repo",
        is_read_only=False,
        method={"type": "string", "enum": ["create", "update"]},
        **_REPO,
        issue_number=_NUMBER,
        title=_TEXT,
        body=_TEXT,
    ),
    _tool(
        "add_issue_comment",
        "Add comment to issue",
        "owner repo issue_number body",
        is_read_only=False,
        **_REPO,
        issue_number=_NUMBER,
        body=_TEXT,
    ),
    _tool(
        "create_branch",
        "Create branch",
        "owner repo branch",
        is_read_only=False,
        **_REPO,
        branch=_TEXT,
        from_branch=_TEXT,
    ),
    _tool(
        "push_files",
        "Push files to repository",
        "owner repo branch files message",
        is_read_only=False,
        **_REPO,
        branch=_TEXT,
        files=_FILES,
        message=_TEXT,
    ),
]


class GitHub:
    """`GITHUB_READ_ONLY` leaves the writing tools out, unless `FAKE_GITHUB_IGNORES_READ_ONLY` says otherwise.

    Every repository holds `files`; `issues` are what is written in some of them, by number.
    """

    name = "github-mcp-server"
    page_size = 7

    def __init__(self) -> None:
        self.files = dict(FILES)
        self.issues: dict[int, str] = {}

    def tools(self) -> list[dict[str, Any]]:
        if os.environ.get("GITHUB_READ_ONLY") and not os.environ.get("FAKE_GITHUB_IGNORES_READ_ONLY"):
            return [tool for tool in TOOLS if tool["annotations"]["readOnlyHint"]]
        return TOOLS

    def call(self, name: str, arguments: dict[str, Any], tell: Tell) -> dict[str, Any]:
        where = f"{arguments.get('owner')}/{arguments.get('repo')}"
        match name:
            case "get_file_contents":
                return _file(self.files, arguments, where)
            case "search_code":
                return _json({"total_count": 1, "items": [{"path": "src/hello.py", "repository": "octocat/hello"}]})
            case "issue_read":
                number = arguments["issue_number"]
                if number == 404:
                    asked = f"https://api.github.com/repos/{where}/issues/404"
                    return _failed(f"failed to get issue: GET {asked}: 404 Not Found []")
                said = {"body": self.issues[number]} if number in self.issues else {}
                issue = {"number": number, "title": "It says goodbye", "state": "open", "repository": where}
                return _json({**issue, **said})
            case "get_me":
                return _json({"login": "octocat"})
            case "issue_write" | "add_issue_comment" | "create_branch" | "push_files":
                return _json({"url": f"https://github.com/{where}", "done": name})
            case _ if any(tool["name"] == name for tool in TOOLS):
                return _json({"tool": name, "arguments": arguments})
        raise Wrong(-32602, f"unknown tool {name!r}")


def _file(files: dict[str, str], arguments: dict[str, Any], where: str) -> dict[str, Any]:
    path = arguments.get("path") or "/"
    if path == "/":
        return _json([{"type": "file", "name": name, "path": name} for name in files])
    if path not in files:
        return _failed(f"failed to get file contents: GET https://api.github.com/repos/{where}: 404 Not Found []")
    resource = {
        "uri": f"repo://{where}/refs/heads/main/contents/{path}",
        "mimeType": "text/plain; charset=utf-8",
        "text": files[path],
    }
    said = {"type": "text", "text": "successfully downloaded text file (SHA: 95d09f2b)"}
    return {"content": [said, {"type": "resource", "resource": resource}]}


def _json(value: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": json.dumps(value)}]}


def _failed(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], "isError": True}


if __name__ == "__main__":
    serve(GitHub())
