"""Options that ask for help, and the commands that it shows for each command; tests parse them."""

HELP = ["-h", "--help"]
RUN = "runs/grid-1a2b3c4d"
EXAMPLES = {
    "run": (
        "skg-bench run profile=smoke",
        "skg-bench run experiment=controls profile=demo workers=2",
        "skg-bench run policy.threshold=0.4 seed=1",
        "skg-bench run '+arms.strict=[policy.threshold=0.7]' --dry-run",
        "skg-bench run -m seed=1,2,3 profile=smoke",
        f"skg-bench run profile=smoke tracker=mlflow out={RUN}",
        f"skg-bench run --check {RUN}",
        f"skg-bench run profile=paper out={RUN} part=0/16",
    ),
    "probe": (
        "skg-bench probe assistant=python assistant.file=my.py:ExactCache",
        "skg-bench probe assistant=python assistant.target=my.Cache --memory 300",
    ),
    "compare": (
        f"skg-bench compare {RUN}",
        f"skg-bench compare {RUN} --metric hit_rate --metric cost_usd",
        f"skg-bench compare {RUN} --margin utility=0.01 --flips 3",
        "skg-bench compare runs/one runs/two --metric all --figure grid.svg",
    ),
    "estimate": (
        "skg-bench estimate clicks.csv --policy random=1/34 --reward click",
        "skg-bench estimate log.parquet --policy a=p_a --policy b=p_b --against a",
        "skg-bench estimate RUN --reward answer_correct --target 'a=[policy=never]'",
    ),
    "plan": (
        f"skg-bench plan {RUN} --arm skg --reference never",
        f"skg-bench plan {RUN} --arm strict --effect 0.005",
    ),
    "gate": (
        "skg-bench gate --baseline baseline.json runs/gate",
        "skg-bench gate --baseline baseline.json --update runs/gate",
        "skg-bench gate --baseline baseline.json runs/gate --junit gate.xml --exact",
    ),
    "report": (
        f"skg-bench report {RUN}",
        f"skg-bench report {RUN} --user 7 --beside runs/other",
        "skg-bench report runs/one runs/two",
    ),
    "runs": (
        "skg-bench runs",
        "skg-bench runs cells --sort difference --only worse",
        "skg-bench runs --page runs/all.html",
    ),
    "forget": (
        f"skg-bench forget {RUN} --user kunde-17",
        f"skg-bench forget {RUN} --user 17 --recording asked",
    ),
    "skills": (
        f"skg-bench skills {RUN}",
        f"skg-bench skills {RUN} --arm skg --out skills.csv",
        f"skg-bench skills {RUN} --exact 20",
        f"skg-bench skills {RUN} --remove 10 --out better",
    ),
    "init": (
        "skg-bench init assistant mine",
        "skg-bench init gate mygate",
    ),
    "list": (
        "skg-bench list",
        "skg-bench list policy",
        "skg-bench list policy.threshold",
        "skg-bench list config",
        "skg-bench list --all",
    ),
    "claims": (
        "skg-bench claims",
        "skg-bench claims K16 P31",
        "skg-bench claims --all",
        "skg-bench claims --open --format markdown",
        "skg-bench claims --make skg_parameters --dry-run",
    ),
    "experiment": (
        "skg-bench experiment",
        "skg-bench experiment controls --help",
        "skg-bench experiment controls runs/controls-1a2b3c4d --write reports",
    ),
    "export": (
        f"skg-bench export mlflow {RUN}",
        "skg-bench export opik runs/one tracker.url=http://localhost:5173/api",
        f"skg-bench export opik {RUN} tracker.users=5 --deadline 60",
    ),
    "skillbook show": (
        f"skg-bench skillbook show {RUN} --arm skg --user 7",
        f"skg-bench skillbook show {RUN} --arm skg --user 7 --turn 200",
        f"skg-bench skillbook show {RUN} --arm skg --user 7 --skill 3",
        "skg-bench skillbook show book.json",
    ),
    "skillbook diff": (
        f"skg-bench skillbook diff {RUN} --arm skg --user 7 --since 200",
        "skg-bench skillbook diff before.json after.json",
    ),
    "skillbook apply": (
        "skg-bench skillbook apply book.json batch.json --out after.json",
        "skg-bench skillbook apply book.json batch.json --mode compat-v2",
    ),
    "skillbook convert": (
        f"skg-bench skillbook convert {RUN} --arm skg --out index",
        "skg-bench skillbook convert book.json --to agent-skills --out skills",
        "skg-bench skillbook convert skills --to v2 --out book.json",
    ),
    "skillbook replay": (f"skg-bench skillbook replay {RUN} --arm skg --users 4",),
    "skillbook push": (
        f"skg-bench skillbook push {RUN} skillbooks.db --arm skg",
        "skg-bench skillbook push runs/one postgresql://localhost/books --arm skg",
    ),
    "skillbook pull": (
        "skg-bench skillbook pull books skillbooks.db",
        "skg-bench skillbook pull books skillbooks.db --user user-7",
    ),
    "data check": (
        "skg-bench data check log.csv",
        "skg-bench data check log.csv simulator.day_first=true",
    ),
    "data import": (
        "skg-bench data import results.csv --out runs/mine",
        "skg-bench data import results.csv --out runs/mine --reference old",
        "skg-bench data import r.parquet --out runs/r --price usd=0",
    ),
    "data label": (
        f"skg-bench data label {RUN} --out label.csv --page label.html",
        f"skg-bench data label {RUN} --read label.csv --price 0.50",
        f"skg-bench data label {RUN} --next 20 --price 0.50 --out m.csv",
        f"skg-bench data label {RUN} --judge my.py:judge",
        "skg-bench data label log.csv --n 500 --first hit --out judged.csv",
    ),
    "data list": ("skg-bench data list",),
    "data get": (
        "skg-bench data get clinc150",
        "skg-bench data get clinc150 --from copies/clinc150",
    ),
    "counterexample find": (
        f"skg-bench counterexample find {RUN} --arm skg --reference never",
        f"skg-bench counterexample find {RUN} --arm skg --out case.json",
    ),
    "counterexample replay": ("skg-bench counterexample replay case.json",),
}


def epilog(command: str) -> str:
    """The end of the help of a command: its examples, a line each."""
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in EXAMPLES[command])))
