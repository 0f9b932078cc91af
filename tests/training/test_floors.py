"""The training job uses the product as any user's job would: through ``traceinsight.capture``."""

import ast
from pathlib import Path

TRAINING = Path(__file__).resolve().parents[2] / "training"


def imported_modules(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def test_training_imports_capture_and_nothing_else_of_the_product() -> None:
    imported = {module for path in TRAINING.glob("**/*.py") for module in imported_modules(path)}
    assert {module for module in imported if module.split(".")[0] == "traceinsight"} == {
        "traceinsight.capture"
    }
