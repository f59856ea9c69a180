"""What a user would run instead of rollerc, timed on the same inputs by the same method."""
import timing


def sets_of(problem):
    """Copies of the inputs as PyTorch holds them: together with outputs of their own, three times the L2."""
    sets = [problem.tensors]
    while len(sets) < timing.sets_for(problem.bytes):
        sets.append({name: x.clone() for name, x in problem.tensors.items()})
    return sets


def torch_us(problem, sets):
    expression = problem.entry["torch"]
    return timing.device_us([problem.caller(expression, tensors) for tensors in sets])


PEERS = {"torch": torch_us}


def measure(problem, peers):
    """{peer: microseconds, or the reason why there are none}"""
    sets, times = sets_of(problem), {}
    for peer in peers:
        try:
            times[peer] = PEERS[peer](problem, sets)
        except RuntimeError as error:
            times[peer] = str(error)[:120]
    return times
