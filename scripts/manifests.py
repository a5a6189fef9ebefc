"""Checks deploy/kubernetes, deploy/compose and deploy/regions; see check-manifests.

Kustomize itself is in no package registry, so its directories are read here: resources, generators and the patches that
delete something. Other fields are refused.
"""

import json
import pathlib
import re
import sys
import urllib.parse
import warnings

import jsonschema
import yaml

warnings.filterwarnings("ignore")
import kubernetes_validate  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
# The oldest version with all that is used.
KUBERNETES = "1.30"
problems = []


class UniqueKeys(yaml.SafeLoader):
    """Refuses a key that is given twice, of which YAML parsers silently take the last."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=deep) for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        for key in {key for key in keys if keys.count(key) > 1}:
            problems.append(f"{node.start_mark.name}:{node.start_mark.line + 1}: {key} is given twice")
        return super().construct_mapping(node, deep)


def documents(path):
    with path.open() as file:
        return [document for document in yaml.load_all(file, UniqueKeys) if document]


def closed(properties, required=()):
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


TEXT, NUMBER, FLAG, ANY = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}, {}
META = closed({"name": TEXT, "namespace": TEXT, "labels": {"type": "object"}}, ["name"])
PROBE = closed({"httpGet": closed({"path": TEXT}, ["path"])}, ["httpGet"])


def custom(version, kind, spec):
    return closed({"apiVersion": {"const": version}, "kind": {"const": kind}, "metadata": META, "spec": spec}, ["spec"])


# The fields that are used of kinds that Kubernetes does not have.
# https://www.spinkube.dev/docs/reference/ and https://keda.sh/docs/latest/reference/scaledobject-spec/
CUSTOM = {
    "SpinAppExecutor": custom(
        "core.spinkube.dev/v1alpha1",
        "SpinAppExecutor",
        closed(
            {
                "createDeployment": FLAG,
                "deploymentConfig": closed({"installDefaultCACerts": FLAG, "spinImage": TEXT, "runtimeClassName": TEXT}),
            },
            ["createDeployment"],
        ),
    ),
    "SpinApp": custom(
        "core.spinkube.dev/v1alpha1",
        "SpinApp",
        closed(
            {
                "image": TEXT,
                "executor": TEXT,
                "replicas": NUMBER,
                "variables": {
                    "type": "array",
                    "items": {
                        "oneOf": [
                            closed({"name": TEXT, "value": TEXT}, ["name", "value"]),
                            closed(
                                {
                                    "name": TEXT,
                                    "valueFrom": closed(
                                        {"secretKeyRef": closed({"name": TEXT, "key": TEXT}, ["name", "key"])},
                                        ["secretKeyRef"],
                                    ),
                                },
                                ["name", "valueFrom"],
                            ),
                        ]
                    },
                },
                "runtimeConfig": closed({"loadFromSecret": TEXT}, ["loadFromSecret"]),
                "checks": closed({"readiness": PROBE, "liveness": PROBE}),
                "resources": closed({"requests": {"type": "object"}, "limits": {"type": "object"}}),
            },
            ["image", "executor", "replicas"],
        ),
    ),
    "ScaledObject": custom(
        "keda.sh/v1alpha1",
        "ScaledObject",
        closed(
            {
                "scaleTargetRef": closed({"apiVersion": TEXT, "kind": TEXT, "name": TEXT}, ["name"]),
                "minReplicaCount": NUMBER,
                "maxReplicaCount": NUMBER,
                "pollingInterval": NUMBER,
                "cooldownPeriod": NUMBER,
                "fallback": closed({"failureThreshold": NUMBER, "replicas": NUMBER}, ["failureThreshold", "replicas"]),
                "triggers": {
                    "type": "array",
                    "minItems": 1,
                    "items": closed(
                        {
                            "type": {"const": "prometheus"},
                            "metadata": closed(
                                {"serverAddress": TEXT, "query": TEXT, "threshold": TEXT},
                                ["serverAddress", "query", "threshold"],
                            ),
                        },
                        ["type", "metadata"],
                    ),
                },
            },
            ["scaleTargetRef", "triggers"],
        ),
    ),
}
KUSTOMIZATION = closed(
    {
        "apiVersion": {"const": "kustomize.config.k8s.io/v1beta1"},
        "kind": {"const": "Kustomization"},
        "namespace": TEXT,
        "resources": {"type": "array", "items": TEXT, "minItems": 1},
        "patches": {"type": "array", "items": closed({"patch": TEXT}, ["patch"])},
        "configMapGenerator": {
            "type": "array",
            "items": closed({"name": TEXT, "namespace": TEXT, "files": {"type": "array", "items": TEXT}}, ["name", "files"]),
        },
        "generatorOptions": closed({"disableNameSuffixHash": FLAG}),
    },
    ["resources"],
)


def check(place, document, schema):
    for error in jsonschema.Draft202012Validator(schema).iter_errors(document):
        problems.append(f"{place}: {'.'.join(map(str, error.absolute_path))}: {error.message}")


def load(directory):
    """All objects of a kustomization."""
    place = directory / "kustomization.yaml"
    (kustomization,) = documents(place)
    check(place, kustomization, KUSTOMIZATION)
    objects = []
    for resource in kustomization["resources"]:
        path = (directory / resource).resolve()
        objects += load(path) if path.is_dir() else [(path, document) for document in documents(path)]
    for generator in kustomization.get("configMapGenerator", []):
        for file in generator["files"]:
            content = (directory / file).read_text()
            if file.endswith(".json"):
                json.loads(content)
        objects.append(
            (place, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": generator["name"]}, "data": {}})
        )
    for patch in kustomization.get("patches", []):
        target = yaml.safe_load(patch["patch"])
        key = (target["kind"], target["metadata"]["name"])
        kept = [(path, other) for path, other in objects if (other["kind"], other["metadata"]["name"]) != key]
        if target.get("$patch") != "delete" or len(kept) != len(objects) - 1:
            problems.append(f"{place}: a patch does not delete exactly one object: {key}")
        objects = kept
    return objects


def check_objects(objects):
    for path, document in objects:
        kind, name = document.get("kind"), document.get("metadata", {}).get("name")
        place = f"{path.relative_to(ROOT)}: {kind} {name}"
        if kind in CUSTOM:
            check(place, document, CUSTOM[kind])
            continue
        template = document.get("spec", {}).get("template")
        if template and template["spec"].get("enableServiceLinks") is not False:
            problems.append(f"{place}: variables of services would be taken for settings")
        try:
            kubernetes_validate.validate(document, KUBERNETES, strict=True)
        except kubernetes_validate.ValidationError as error:
            problems.append(f"{place}: {'.'.join(map(str, error.path))}: {error.message}")
        except kubernetes_validate.SchemaNotFoundError as error:
            problems.append(f"{place}: {error}")
    names = [(document["kind"], document["metadata"]["name"]) for _, document in objects]
    problems.extend(f"two objects are {name}" for name in set(names) if names.count(name) > 1)


def check_contents(objects):
    """What a schema does not say."""
    by_name = {(document["kind"], document["metadata"]["name"]): document for _, document in objects}
    farm = by_name["StatefulSet", "platen-farm"]["spec"]
    pod = farm["template"]["spec"]
    container = pod["containers"][0]
    app = by_name["SpinApp", "platen"]["spec"]
    proxy = by_name["Service", "platen-farms"]["metadata"]["name"]
    urls = [entry["value"] for entry in app["variables"] if entry["name"] == "farm_url"]
    if urls != [f"http://{proxy}.platen.svc.cluster.local:3001"]:
        problems.append(f"SpinApp platen: its farm_url is not the proxy: {urls}")
    servers = servers_of("kubernetes/base/haproxy.cfg")
    expected = [f"platen-farm-{index}.platen-farm.platen.svc.cluster.local:3001" for index in range(len(servers))]
    if servers != expected:
        problems.append(f"haproxy.cfg: its servers are not the pods of the StatefulSet: {servers}")
    scaler = by_name.get(("HorizontalPodAutoscaler", "platen-farm")) or by_name["ScaledObject", "platen-farm"]
    maximum = scaler["spec"].get("maxReplicas") or scaler["spec"].get("maxReplicaCount")
    if maximum > len(servers):
        problems.append(f"farms are scaled to {maximum}, and haproxy.cfg has {len(servers)} addresses")
    selectors = [
        by_name["Service", "platen-farm"]["spec"]["selector"],
        farm["selector"]["matchLabels"],
        by_name["PodDisruptionBudget", "platen-farm"]["spec"]["selector"]["matchLabels"],
        by_name["NetworkPolicy", "platen-farm"]["spec"]["podSelector"]["matchLabels"],
    ]
    if any(selector != farm["template"]["metadata"]["labels"] for selector in selectors):
        problems.append("not all selectors of the farm are its labels")
    if pod["terminationGracePeriodSeconds"] < 50 or container["securityContext"]["allowPrivilegeEscalation"]:
        problems.append("the farm has no time to drain, or may get privileges")
    secret = by_name["Secret", "platen"]["stringData"]
    used = {entry["valueFrom"]["secretKeyRef"]["key"] for entry in app["variables"] if "valueFrom" in entry}
    used |= {item["key"] for volume in pod["volumes"] for item in volume.get("secret", {}).get("items", [])}
    if used - secret.keys():
        problems.append(f"the Secret has no {used - secret.keys()}")
    settings = (ROOT / "docs/configuration.md").read_text()
    for entry in container["env"]:
        if f"`{entry['name']}`" not in settings:
            problems.append(f"the farm has no setting {entry['name']}")
    scrape = (DEPLOY / "monitoring/prometheus-kubernetes.yml").read_text()
    (job,) = yaml.safe_load(scrape)["scrape_configs"]
    keep = f"{farm['template']['metadata']['labels']['app.kubernetes.io/name']};{container['ports'][0]['name']}"
    if "authorization" not in job or job["relabel_configs"][0]["regex"] != keep:
        problems.append(f"Prometheus reads not {keep}, or without the token")
    metrics = (DEPLOY / "monitoring/grafana-dashboard.json").read_text()
    for trigger in scaler["spec"].get("triggers", []):
        for metric in re.findall(r"platen_\w+", trigger["metadata"]["query"]):
            if metric not in metrics:
                problems.append(f"the autoscaler uses {metric}, which the dashboard does not have")


def servers_of(path):
    """The addresses in a copy of haproxy/farms.cfg, which differs in nothing else."""
    shipped, copy = ((DEPLOY / name).read_text().splitlines() for name in ("haproxy/farms.cfg", path))
    of_farms = [line.split()[2] for line in copy if line.startswith("  server ")]
    if copy[: len(copy) - len(of_farms)] != [line for line in shipped if not line.startswith("  server ")]:
        problems.append(f"{path}: it differs from haproxy/farms.cfg in more than its servers")
    return of_farms


def check_compose(folder, public):
    """Against the schema of the specification's fields that are used, and for ports of the host of other services than `public`."""
    (compose,) = documents(DEPLOY / folder / "compose.yaml")
    compose.pop("x-farm", None)
    known = {
        "image", "restart", "environment", "secrets", "networks", "stop_grace_period", "read_only", "tmpfs", "cap_drop", "user",
        "security_opt", "pids_limit", "mem_limit", "volumes", "depends_on", "ports", "profiles", "network_mode", "sysctls",
    }  # fmt: skip
    settings = (ROOT / "docs/configuration.md").read_text()
    services = compose["services"]
    for name, service in services.items():
        problems.extend(f"{folder}: {name} has an unknown field {field}" for field in service.keys() - known)
        for field in ("networks", "secrets"):
            missing = set(service.get(field, [])) - compose[field].keys()
            problems.extend(f"{folder}: {name} uses {entry}, which {field} does not have" for entry in missing)
        others = set(service.get("depends_on", {})) | {service.get("network_mode", "").removeprefix("service:")} - {""}
        problems.extend(f"{folder}: {name} depends on {other}" for other in others - services.keys())
        for variable in service.get("environment", {}):
            if variable.startswith(("PLATEN_", "SPIN_VARIABLE_")) and f"`{variable}`" not in settings:
                problems.append(f"{folder}: {name} has no setting {variable}")
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("../") and not (DEPLOY / folder / source).is_file():
                problems.append(f"{folder}: {name} needs {source}")
        if "ports" in service and name not in public:
            problems.append(f"{folder}: {name} has a port of the host")
    farm = urllib.parse.urlsplit(services["platen"]["environment"]["PLATEN_FARM_URL"]).hostname
    farms = {server.split(":")[0] for server in servers_of("haproxy/farms.cfg")} if farm == "farms" else set()
    problems.extend(f"{folder}: there is no service {name}" for name in (farms | {farm}) - services.keys())
    profile = DEPLOY / folder / "../containers/seccomp.json"
    if not profile.is_file():
        problems.append(f"{folder}: the seccomp profile is missing")


for name in ("base", "keda", "seccomp"):
    objects = load(DEPLOY / "kubernetes" / name)
    check_objects(objects)
    if name != "seccomp":
        check_contents(objects)
check_compose("compose", {"proxy"})
# The proxy has the network of `platen`; the database has an address of the private network.
check_compose("regions", {"platen", "database"})
for variables in (DEPLOY / "regions").glob("*.env"):
    missing = {"LEDGER_URL", "CLAIM_AHEAD"} - set(re.findall(r"^(\w+)=.", variables.read_text(), re.M))
    problems.extend(f"{variables.name}: {name} is missing" for name in missing)
print("\n".join(problems) or "the manifests are valid")
sys.exit(bool(problems))
