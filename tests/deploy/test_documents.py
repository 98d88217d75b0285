"""The diagrams say what is there, and the examples what is taken."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/deploying.md").read_text()


def diagrams() -> list[str]:
    return re.findall(r"```mermaid\n(.*?)```", PAGE, re.DOTALL)


def test_the_aws_diagram_shows_the_services_of_the_stack() -> None:
    made = re.findall(r'self\._service\(\s*"(\w+)"', (ROOT / "deploy/aws/services.py").read_text())
    inside = re.search(r"subgraph services.*?\n(.*?)\n    end", diagrams()[1], re.DOTALL)
    assert inside is not None
    assert sorted(inside[1].split()) == sorted(made)


def test_the_parts_are_those_of_the_compose_file() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    shown = set(re.findall(r"\b(api|scheduler|worker)\b", diagrams()[0]))
    assert shown == {"api", "scheduler", "worker"}
    assert shown <= services.keys()


def test_every_option_of_the_stack_is_in_the_table() -> None:
    fields = re.findall(r"^    (\w+): .*? = ", (ROOT / "deploy/aws/options.py").read_text(), re.MULTILINE)
    missing = [name for name in fields if f"`{name}`" not in PAGE]
    assert not missing


def test_the_justfile_has_the_names_of_the_makefile() -> None:
    recipes = set(re.findall(r"^(\w+)(?: \*\w+)?:", (ROOT / "justfile").read_text(), re.MULTILINE)) - {"_default"}
    targets = set(re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert recipes == targets - {"clean", "help"}


def test_examples_with_curl_send_json_as_json() -> None:
    pages = [page.read_text() for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))]
    examples = [each for page in pages for each in re.findall(r"^\$ curl (?:.*\\\n)*.*", page, re.MULTILINE)]
    assert len(examples) > 5
    assert not [each for each in examples if re.search(r"\s(-d|--data)\s", each)]
