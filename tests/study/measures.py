"""What is measured in draws. Worker processes read it here, as tests and their libraries take a second to import."""

from skg_bench.study.guardian.lives import Draw, Lives, life_means


def utility(_draw: Draw, lives: Lives) -> dict[str, float]:
    """Of every arm."""
    return {name: float(life_means(life, life.utility).mean()) for name, life in lives.items()}
