"""Play the reference actions of published tau2-bench tasks, and count the tasks that are scored in full.

    pip install inspect_ai toml
    python perf/tau2_reference.py FOLDER [DOMAIN ...] [--all] [--keep]

FOLDER is the folder `inspect_evals/tau2` of the package inspect_evals (MIT), which has tasks, data and tools. Each
domain is run three times: with each task's own actions, with no action, and with the actions of another task. A task is
scored in full if its own actions get reward 1 and another run gets reward 0; without a score for each criterion in its
`reward_basis`, a task has no reward. Telecom has the 114 tasks of the split `base`, or all 2,285 with `--all`.
"""

from __future__ import annotations

import argparse
import copy
import functools
import gzip
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, ClassVar

DOMAINS = ("airline", "retail", "mock", "telecom", "banking_knowledge")
CHANGERS = ("cancel", "modify", "update", "book", "return", "exchange", "create", "give", "change", "apply", "toggle")
SUITE = """
import sys
sys.path.insert(0, {here!r})
from evalsuite import benchmark
from tau2_reference import make_world

@benchmark("tau2", domain={domain!r}, world=make_world({domain!r}), user_tools={user_tools!r}, max_turns=60)
def test_tau2(scores):
    pass
"""


# The worlds: the tools of the package, as a user of evalsuite would give them.


def read(path: Path) -> Any:
    """Read a JSON, TOML or text file, which may be compressed."""
    compressed = path.with_name(f"{path.name}.gz")
    data = gzip.decompress(compressed.read_bytes()) if compressed.exists() else path.read_bytes()
    return json.loads(data) if path.suffix == ".json" else data.decode()


@functools.cache
def load_toolkits(domain: str) -> tuple[Any, Any]:
    """Load the toolkits of agent and customer; the latter may be None."""
    name = {"banking_knowledge": "banking"}.get(domain, domain)
    module = importlib.import_module(f"inspect_evals.tau2.{name}.{name.title()}AgentTools")
    agent = getattr(module, f"{name.title()}AgentTools")
    try:
        module = importlib.import_module(f"inspect_evals.tau2.{name}.{name.title()}UserTools")
    except ModuleNotFoundError:
        return agent, None
    return agent, getattr(module, f"{name.title()}UserTools")


def list_tools(domain: str, toolkit: Any, party: str) -> list[str]:
    """List the names of the tools that a party has."""
    if toolkit is None:
        return []
    name = {"banking_knowledge": "banking"}.get(domain, domain)
    module = importlib.import_module(f"inspect_evals.tau2.{name}.{'user_tools' if party == 'user' else 'tools'}")
    (offered,) = (value for key, value in vars(module).items() if key.startswith("all_"))
    names = [entry.__name__.removeprefix("banking_") for entry in offered]
    return [name for name in names if hasattr(toolkit, name)]


@functools.cache
def load_data(domain: str) -> list[Any]:
    """Load the initial data of the toolkits."""
    databases = []
    for toolkit in load_toolkits(domain):
        if toolkit is not None:
            made = make_toolkit(toolkit)
            made.initialize()
            databases.append(made.db)
    return databases


def make_toolkit(toolkit: Any) -> Any:
    from inspect_ai.util import Store

    return toolkit(store=Store())


class KitWorld:
    """The world of a domain whose tools are methods of one or two toolkits."""

    domain: ClassVar[str]

    def __init__(self, sample: Any) -> None:
        del sample
        toolkits = load_toolkits(self.domain)
        self.kits = [make_toolkit(toolkit) for toolkit in toolkits if toolkit is not None]
        for kit, data in zip(self.kits, load_data(self.domain), strict=True):
            kit.initialized = True
            kit.db = copy.deepcopy(data)
        if self.domain == "banking_knowledge":
            self.kits[1].db = self.kits[0].db
        self.synchronize()

    def synchronize(self) -> None:
        if self.domain == "telecom":
            from inspect_evals.tau2.telecom.environment import Environment

            Environment(self.kits[1], self.kits[0])

    def __getattr__(self, name: str) -> Any:
        for kit in () if name == "kits" or name.startswith("__") else self.kits:
            if hasattr(kit, name):
                return functools.partial(self.call, getattr(kit, name))
        raise AttributeError(name)

    def call(self, method: Any, **arguments: Any) -> Any:
        result = method(**arguments)
        self.synchronize()
        return result

    def state(self) -> Any:
        return [kit.db.model_dump(mode="json") for kit in self.kits]

    def update_db(self, data: dict[str, Any]) -> None:
        from inspect_evals.tau2.banking.environment import _apply_initialization_data
        from inspect_evals.tau2.data_model.tasks import InitializationData

        _apply_initialization_data(self.kits[0].db, InitializationData(agent_data=data))

    update_user_db = update_db


def make_world(domain: str) -> type:
    """Make a world from the toolkits of a domain."""
    from evalsuite.tools import tool

    if domain == "mock":
        return make_mock_world()
    namespace: dict[str, Any] = {"domain": domain}
    for toolkit, party in zip(load_toolkits(domain), ("agent", "user"), strict=True):
        for name in list_tools(domain, toolkit, party):
            namespace[name] = tool(name=name, description=f"The tool {name}.")(wrap_method(toolkit, name))
    for answer in (transfer_to_human_agents, calculate):
        namespace.setdefault(answer.__name__, tool(answer))
    return type(domain, (KitWorld,), namespace)


def transfer_to_human_agents(self: Any, summary: str) -> str:
    """Transfer to a person."""
    del self, summary
    return "Transfer successful"


def calculate(self: Any, expression: str) -> str:
    """Calculate."""
    del self
    return expression


def wrap_method(toolkit: Any, name: str) -> Any:
    """Wrap a toolkit's method as a method of the world."""

    @functools.wraps(getattr(toolkit, name))
    def method(self: KitWorld, **arguments: Any) -> Any:
        return KitWorld.__getattr__(self, name)(**arguments)

    return method


def make_mock_world() -> type:
    """Make the world of the domain `mock`, whose tools the package lacks."""
    from evalsuite.tools import tool

    data = read(Path(os.environ["TAU2_DATA"]) / "mock" / "db.json")

    class Mock:
        def __init__(self, sample: Any) -> None:
            del sample
            self.data = copy.deepcopy(data)

        @tool
        def create_task(self, user_id: str, title: str, description: str = "") -> dict[str, str]:
            """Create a task."""
            if user_id not in self.data["users"]:
                raise ValueError(f"User {user_id} not found")
            name = f"task_{len(self.data['tasks']) + 1}"
            task = {"task_id": name, "title": title, "description": description, "status": "pending"}
            self.data["tasks"][name] = task
            self.data["users"][user_id]["tasks"].append(name)
            return task

        @tool
        def update_task_status(self, task_id: str, status: str) -> Any:
            """Update a task's status."""
            self.data["tasks"][task_id]["status"] = status
            return self.data["tasks"][task_id]

        transfer_to_human_agents = tool(transfer_to_human_agents)

        def assert_number_of_tasks(self, user_id: str, expected_number: int) -> bool:
            return len(self.data["users"][user_id]["tasks"]) == expected_number

        def assert_task_status(self, task_id: str, expected_status: str) -> bool:
            return bool(self.data["tasks"].get(task_id, {}).get("status") == expected_status)

        def update_db(self, update_data: dict[str, Any]) -> None:
            merge(self.data, update_data)

        def state(self) -> Any:
            return self.data

    return Mock


def merge(data: dict[str, Any], changes: dict[str, Any]) -> None:
    for name, value in changes.items():
        if isinstance(value, dict) and isinstance(data.get(name), dict):
            merge(data[name], value)
        else:
            data[name] = value


# The players: agent and customer take the actions of their party in turn. Their messages carry task and position.


@functools.cache
def read_plans() -> list[dict[str, Any]]:
    plans: list[dict[str, Any]] = json.loads(Path(os.environ["TAU2_PLANS"]).read_text("utf-8"))
    return plans


def play(messages: list[dict[str, Any]], party: str) -> Any:
    """Take the party's next action, or say how far the plan has been played."""
    spoken = [number for number, message in enumerate(messages) if "#at " in (message.get("content") or "")]
    task, at = 0, 0
    if spoken:
        task, at = map(int, messages[spoken[-1]]["content"].split("#at ")[1].split()[:2])
    elif party == "user":
        task = int(messages[0]["content"].split("#task ")[1].split()[0])
    results = [message for message in messages[(spoken[-1] if spoken else 0) :] if message["role"] == "tool"]
    plan, at = read_plans()[task], at + len(results)
    if at < len(plan["actions"]) and plan["actions"][at].get("requestor", "assistant") == party:
        action = plan["actions"][at]
        function = {"name": action["name"], "arguments": json.dumps(action.get("arguments") or {})}
        call = {"id": f"{party}{at}", "type": "function", "function": function}
        return {"content": "", "tool_calls": [call]}
    is_over = at == len(plan["actions"])
    if party == "user" and is_over and spoken and "#over" in messages[spoken[-1]]["content"]:
        return "###END###"
    told = "; ".join(map(str, plan["communicate"])) if is_over and party == "assistant" else ""
    return f"#at {task} {at} {'#over' if is_over and party == 'assistant' else ''} {told}"


def agent(messages: list[dict[str, Any]], **_: Any) -> Any:
    return play(messages, "assistant")


def customer(messages: list[dict[str, Any]], **_: Any) -> Any:
    return play(messages, "user")


# The runs.


def read_tasks(folder: Path, domain: str, *, every: bool) -> list[dict[str, Any]]:
    tasks: list[dict[str, Any]] = read(folder / domain / "tasks.json")
    if domain == "telecom" and not every:
        chosen = set(read(folder / domain / "split_tasks.json")["base"])
        tasks = [task for task in tasks if task["id"] in chosen]
    return tasks


def make_plans(tasks: list[dict[str, Any]], run: str) -> list[dict[str, Any]]:
    """Make what the players do in each task."""
    own = []
    for task in tasks:
        criteria = task.get("evaluation_criteria") or {}
        own.append({"actions": criteria.get("actions") or [], "communicate": criteria.get("communicate_info") or []})
    if run == "own":
        return own
    if run == "none":
        return [{"actions": [], "communicate": []} for _ in own]
    changing = [plan for plan in own if any(action["name"].startswith(CHANGERS) for action in plan["actions"])]
    others = []
    for plan in own:
        other = next((other for other in changing if other["actions"] != plan["actions"]), {"actions": list[Any]()})
        others.append({"actions": other["actions"], "communicate": []})
    return others


def run_domain(data: Path, domain: str, work: Path, *, every: bool) -> None:
    tasks = read_tasks(data, domain, every=every)
    folder = work / "data" / "tau2" / domain
    folder.mkdir(parents=True)
    marked = copy.deepcopy(tasks)
    for number, task in enumerate(marked):
        scenario = task["user_scenario"]
        scenario["persona"] = f"#task {number} {scenario.get('persona') or ''}"
        history = (task.get("initial_state") or {}).get("message_history") or [{"role": "assistant"}]
        if history[-1]["role"] == "user":
            history[-1]["content"] += f" #at {number} 0"
    (folder / "tasks.json").write_text(json.dumps(marked), "utf-8")
    (folder / "policy.md").write_text("Follow the plan.", "utf-8")
    user_tools = [] if domain == "mock" else list_tools(domain, load_toolkits(domain)[1], "user")
    suite = SUITE.format(here=str(Path(__file__).parent.absolute()), domain=domain, user_tools=user_tools)
    records: dict[str, dict[str, Any]] = {}
    for run in ("own", "none", "other"):
        place = work / f"{domain}-{run}"
        place.mkdir()
        (place / "conftest.py").write_text('pytest_plugins = ["evalsuite.plugin"]\n', "utf-8")
        (place / "pytest.ini").write_text(
            "[pytest]\nevalsuite_user_model = function:tau2_reference:customer\n", "utf-8"
        )
        (place / "test_tau2.py").write_text(suite, "utf-8")
        (place / "plans.json").write_text(json.dumps(make_plans(tasks, run)), "utf-8")
        environment = {
            **os.environ,
            "TAU2_PLANS": str(place / "plans.json"),
            "TAU2_DATA": str(data),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }
        environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent.absolute()), *sys.path])
        command = [sys.executable, "-m", "pytest", "-q", "--model=function:tau2_reference:agent", "--run=run"]
        done = subprocess.run(
            [*command, f"--data={work / 'data'}"],
            cwd=place,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        (place / "out").write_text(done.stdout + done.stderr, "utf-8")
        lines = (place / "reports" / "run" / "records.jsonl").read_text("utf-8").splitlines()
        records[run] = {record["sample"]: record for record in map(json.loads, lines)}
    report(domain, tasks, records, work)


def report(domain: str, tasks: list[dict[str, Any]], records: dict[str, dict[str, Any]], work: Path) -> None:
    whole, rest = 0, []
    for task in tasks:
        name = str(task["id"])
        rewards = {run: find_reward(entries, name) for run, entries in records.items()}
        if rewards["own"] == 1 and 0 in (rewards["none"], rewards["other"]):
            whole += 1
        else:
            rest.append((name, rewards))
    reports = work / f"{domain}-own" / "reports" / "run"
    sizes = {name: (reports / name).stat().st_size / 1e6 for name in ("records.jsonl", "journal.sqlite")}
    print(f"{domain}: {whole} of {len(tasks)} in full;", *(f"{name} {size:.1f} MB" for name, size in sizes.items()))
    for name, rewards in rest:
        print("   ", name[:100], rewards)


def find_reward(entries: dict[str, Any], name: str) -> float | str:
    record = entries.get(name)
    if record is None:
        return "no record"
    score = record.get("scores", {}).get("reward")
    if score is None:
        return str(record.get("error") or "no reward")[:300]
    return float(score["value"] if isinstance(score, dict) else score)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("domains", nargs="*", metavar="DOMAIN", help=", ".join(DOMAINS))
    parser.add_argument("--all", action="store_true", help="all tasks of telecom")
    parser.add_argument("--keep", action="store_true", help="keep the runs' folder, and print it")
    options = parser.parse_args()
    sys.path.insert(0, str(options.folder.absolute().parent.parent))
    place = Path(tempfile.mkdtemp(prefix="tau2-"))
    for chosen in options.domains or DOMAINS:
        run_domain(options.folder.absolute() / "data" / "domains", chosen, place, every=options.all)
    if options.keep:
        print(place)
    else:
        shutil.rmtree(place)
