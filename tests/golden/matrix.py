"""The topology in the facts of one node, as text: who is how far from whom."""


def value(facts, key, fallback):
    fact = facts.get(key, {})
    return fact.get("value", fallback) if fact.get("state") == "present" else fallback


def matrix(facts):
    fact = facts.get("topology.gpus", {})
    if fact.get("state") != "present":
        return f"topology: {fact.get('state', 'missing')}: {fact.get('reason', '')}\n"
    gpus, nics = value(facts, "topology.gpus", []), value(facts, "topology.nics", [])
    names = {n["pci"]: n["name"] for n in nics}
    pairs = {}
    for row in value(facts, "topology.peers", []):
        pairs[row["gpu"], row["peer"]] = pairs[row["peer"], row["gpu"]] = row["class"]
    for row in value(facts, "topology.gpu_nic", []):
        pairs[row["gpu"], row["nic"]] = row["class"]
    heads = [g["name"] for g in gpus] + [n["name"] for n in nics]
    keys = [g["pci"] for g in gpus] + [n["pci"] for n in nics]
    width = max([len(h) for h in heads] + [5]) + 1
    lines = ["".ljust(width) + "".join(h.ljust(width) for h in heads)]
    for gpu in gpus:
        cells = ["X" if k == gpu["pci"] else pairs.get((gpu["pci"], k), "-") for k in keys]
        lines.append(gpu["name"].ljust(width) + "".join(c.ljust(width) for c in cells))
    for gpu in gpus:
        near = ", ".join(names.get(n, n) for n in gpu["nics"])
        lines.append(f"{gpu['name']} {gpu['pci']} numa {gpu['numa']}: {gpu['class']} {near}; "
                     f"takes {names.get(gpu['nic'], gpu['nic'])}")
    for nic in nics:
        lines.append(f"{nic['name']} {nic['pci']} numa {nic['numa']}"
                     f"{'' if nic['fabric'] else ', no fabric NIC'}: {len(nic['gpus'])} GPUs")
    access = {}
    for row in value(facts, "topology.peers", []):
        access[str(row["p2p"])] = access.get(str(row["p2p"]), 0) + 1
    lines.append("peer access: " + (", ".join(f"{n} {a}" for a, n in sorted(access.items())) or "-"))
    return "\n".join(line.rstrip() for line in lines) + "\n"


if __name__ == "__main__":
    import json
    import sys
    print(matrix(json.load(sys.stdin)["facts"]), end="")
