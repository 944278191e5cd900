"""What a client gets wrong: sizes, encodings, formats, fields, names and patches."""

from typing import Any

from tests.record.session import Session

SPACE = "/api/v1/namespaces/rec-bad"
MAPS = f"{SPACE}/configmaps"
PODS = f"{SPACE}/pods"
MIB = 1024 * 1024
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
JSON_PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"


def config_map(name: str = "x", **more: Any) -> dict[str, Any]:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


def pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    """A pod of one container."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }


async def run(session: Session) -> None:
    """All of it."""
    await session.quietly("POST", "/api/v1/namespaces", {"metadata": {"name": "rec-bad"}})
    await session.quietly("POST", MAPS, config_map("held", data={"k": "v"}))
    await sizes(session)
    await encodings(session)
    await formats(session)
    await fields(session)
    await names(session)
    await values(session)


async def sizes(session: Session) -> None:
    """Bodies over 3 MiB, and objects that come near."""
    big = config_map("big", data={"k": "x" * (3 * MIB)})
    await session.ask("size: a body over 3 MiB", "POST", MAPS, big)
    await session.ask("size: an update over 3 MiB", "PUT", f"{MAPS}/held", big)
    await session.ask(
        "size: a patch over 3 MiB", "PATCH", f"{MAPS}/held", {"data": {"k": "x" * 3 * MIB}}, content=MERGE
    )
    await session.ask("size: delete options over 3 MiB", "DELETE", f"{MAPS}/held", {"x": "x" * 3 * MIB})
    yaml = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: big}}\ndata: {{k: {'x' * 3 * MIB}}}\n"
    await session.ask("size: YAML over 3 MiB", "POST", MAPS, yaml, content="application/yaml")
    annotated = config_map()
    annotated["metadata"]["annotations"] = {"a": "x" * (256 * 1024)}
    await session.ask("size: annotations over 256 KiB", "POST", MAPS, annotated)
    many = [{"op": "test", "path": "/data/k", "value": "v"}] * 10001
    await session.ask("size: a JSON patch of 10,001 operations", "PATCH", f"{MAPS}/held", many, content=JSON_PATCH)


async def encodings(session: Session) -> None:
    """Bytes that are no JSON, or no UTF-8."""
    start = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"'
    bodies: dict[str, bytes] = {
        "no UTF-8 in a value": start + b'enc1"},"data":{"k":"a\xff\xfeb"}}',
        "no UTF-8 in a name": start + b'\xff"}}',
        "no UTF-8 outside a string": b'{\xff"apiVersion":"v1"}',
        "a byte order mark": b"\xef\xbb\xbf" + start + b'enc2"}}',
        "nothing": b"",
        "blanks": b"  \n ",
        "null": b"null",
        "an array": b"[]",
        "a string": b'"x"',
        "a number": b"12",
        "words": b"hello world",
        "an open object": b'{"a":',
        "an open string": b'{"a":"b',
        "a comma too many": b'{"a":1,}',
        "a missing comma": b'{"a":1 "b":2}',
        "a missing colon": b'{"a" 1}',
        "an array without commas": b'{"a":[1 2]}',
        "a second value": start + b'enc3"}} {}',
        "a bad escape": b'{"a":"\\x"}',
        "a bad number": b'{"a":-}',
        "a bad fraction": b'{"a":1.}',
        "a bad literal": b'{"a":trve}',
        "a line end in a string": b'{"a":"b\nc"}',
        "a bare key": b"{a:1}",
        "a single quote": b"{'a':1}",
        "not a number": b'{"a":NaN}',
        "a null byte": b'{"a":\x00}',
    }
    for name, body in bodies.items():
        await session.ask(f"encoding: {name}", "POST", MAPS, body, content="application/json")
    await session.ask(
        "encoding: protobuf without its mark", "POST", MAPS, b"\x00\x01", content="application/vnd.kubernetes.protobuf"
    )
    await session.ask(
        "encoding: protobuf cut short", "POST", MAPS, b"k8s\x00\x0a\xff", content="application/vnd.kubernetes.protobuf"
    )
    for name, text in {
        "open": "a: [1",
        "tabs": "a:\n\t- b",
        "a list": "- a\n- b\n",
        "a word": "hello",
        "nothing": "",
        "a key twice": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y1}\ndata: {a: b, a: c}\n",
    }.items():
        await session.ask(f"YAML: {name}", "POST", MAPS, text, content="application/yaml")


async def formats(session: Session) -> None:
    """Content types, Accept headers, and bodies of another kind."""
    for content in (
        "text/plain",
        "application/xml",
        "application/json; charset=latin1",
        "nonsense",
        "application/json-patch+json",
    ):
        await session.ask(f"format: a body as {content}", "POST", MAPS, config_map("f1"), content=content)
    for content in ("application/json", "text/plain", "application/yaml"):
        await session.ask(f"format: a patch as {content}", "PATCH", f"{MAPS}/held", {"data": {}}, content=content)
    for accept in (
        "application/xml",
        "text/html",
        "application/json;as=Nonsense;v=v1;g=x",
        "application/yaml;q=0",
        "*/*",
        "text/html, application/json;q=0.5",
    ):
        await session.ask(f"format: an answer as {accept}", "GET", f"{MAPS}/held", accept=accept)
    bodies: dict[str, Any] = {
        "another kind": pod(),
        "another version": config_map() | {"apiVersion": "v2"},
        "another group": config_map() | {"apiVersion": "apps/v1"},
        "an unknown kind": {"apiVersion": "v1", "kind": "Nonsense", "metadata": {"name": "x"}},
        "an unknown group": {"apiVersion": "example.com/v1", "kind": "ConfigMap", "metadata": {"name": "x"}},
        "a version of nonsense": config_map() | {"apiVersion": "a/b/c"},
        "a kind that is no string": config_map() | {"kind": 5},
        "a version alone": {"apiVersion": "v1", "metadata": {"name": "f2"}},
        "a kind alone": {"kind": "ConfigMap", "metadata": {"name": "f3"}},
    }
    for name, body in bodies.items():
        await session.ask(f"format: {name}", "POST", MAPS, body)


async def fields(session: Session) -> None:
    """Fields that are unknown, twice, or of another type, under each validation."""
    unknown = config_map("s1", dta={"k": "v"}) | {"metadata": {"name": "s1", "lables": {"a": "b"}}}
    twice = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"s2","name":"s3"},"data":{"a":"1","a":"2"}}'
    nested = pod(
        "s4", containers=[{"name": "c", "image": "i", "imagePullPolcy": "Always", "ports": [{"containrPort": 1}]}]
    )
    for how in ("Strict", "Warn", "Ignore", ""):
        query = f"?dryRun=All&fieldValidation={how}" if how else "?dryRun=All"
        await session.ask(f"fields: unknown, {how or 'nothing said'}", "POST", MAPS + query, unknown)
        await session.ask(f"fields: twice, {how or 'nothing said'}", "POST", MAPS + query, twice)
        await session.ask(f"fields: nested, {how or 'nothing said'}", "POST", PODS + query, nested)
    await session.ask(
        "fields: another case", "POST", f"{MAPS}?dryRun=All&fieldValidation=Strict", config_map("s5", Data={"a": "b"})
    )
    await session.ask(
        "fields: unknown in a merge patch", "PATCH", f"{MAPS}/held?fieldValidation=Strict", {"dta": {}}, content=MERGE
    )
    await session.ask("fields: unknown in a merge patch, warned", "PATCH", f"{MAPS}/held", {"dta": {}}, content=MERGE)
    unknown_op = [{"op": "add", "path": "/dta", "value": {}}]
    await session.ask(
        "fields: unknown in a JSON patch",
        "PATCH",
        f"{MAPS}/held?fieldValidation=Strict",
        unknown_op,
        content=JSON_PATCH,
    )
    await session.ask(
        "fields: unknown in a strategic patch",
        "PATCH",
        f"{MAPS}/held?fieldValidation=Strict",
        {"dta": {}},
        content=STRATEGIC,
    )
    yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held}\ndta: {a: b}\n"
    await session.ask("fields: unknown in an apply", "PATCH", f"{MAPS}/held?fieldManager=m", yaml, content=APPLY)
    wrong: dict[str, Any] = {
        "a number for a string": config_map("w", data={"k": 5}),
        "a string for a map": config_map("w", data="x"),
        "a list for a map": config_map("w", data=["x"]),
        "a map for a string": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": {"a": "b"}}},
        "labels that are no map": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "w", "labels": ["a"]}},
        "a label that is no string": {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "w", "labels": {"a": True}},
        },
        "bytes that are no base64": config_map("w", binaryData={"k": "***"}),
        "a string for a boolean": config_map("w", immutable="yes"),
        "metadata that is a string": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": "x"},
        "a bad time": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "w", "creationTimestamp": "noon"}},
    }
    for name, body in wrong.items():
        await session.ask(f"fields: {name}", "POST", MAPS, body)


async def names(session: Session) -> None:
    """Names that are too long or of the wrong letters."""
    for name in ("x" * 254, "Upper", "under_score", "-dash", "a..b", "a/b", "é", " ", "a b"):
        await session.ask(f"name: {name[:20]}", "POST", MAPS, config_map(name))
    await session.ask("name: a namespace of 64", "POST", "/api/v1/namespaces", {"metadata": {"name": "x" * 64}})
    await session.ask("name: a namespace with a dot", "POST", "/api/v1/namespaces", {"metadata": {"name": "a.b"}})
    await session.ask(
        "name: a service that begins with a digit",
        "POST",
        f"{SPACE}/services",
        {"metadata": {"name": "1a"}, "spec": {"ports": [{"port": 80}]}},
    )
    await session.ask("name: none", "POST", MAPS, {"metadata": {}})
    await session.ask("name: generated from a bad base", "POST", MAPS, {"metadata": {"generateName": "Bad_"}})
    long = await session.ask(
        "name: generated from a long base", "POST", f"{MAPS}?dryRun=All", {"metadata": {"generateName": "x" * 253}}
    )
    assert long
    labels = {"a" * 64: "v", "b": "v" * 64, "c d": "v", "/x": "v", "x/": "v", "e": "-"}
    for key, value in labels.items():
        body = {"metadata": {"name": "l", "labels": {key: value}}}
        await session.ask(f"name: label {key[:9]}={value[:9]}", "POST", MAPS, body)
    await session.ask(
        "name: annotation keys", "POST", MAPS, {"metadata": {"name": "l", "annotations": {"a b": "v", "x" * 64: "v"}}}
    )
    await session.ask("name: finalizers", "POST", MAPS, {"metadata": {"name": "l", "finalizers": ["a b", "short"]}})
    await session.ask("name: not that of the path", "PUT", f"{MAPS}/held", config_map("other"))
    await session.ask(
        "name: namespace not that of the path", "POST", MAPS, {"metadata": {"name": "n", "namespace": "default"}}
    )
    await session.ask(
        "name: a namespace for a node", "POST", "/api/v1/nodes", {"metadata": {"name": "n", "namespace": "default"}}
    )
    await session.ask("name: read too long", "GET", f"{MAPS}/{'x' * 300}")
    for key in ("a/b", "..", "..a", ".", "x" * 254):
        await session.ask(f"name: a key of data {key[:9]}", "POST", MAPS, config_map("k", data={key: "v"}))
    await session.ask(
        "name: a key in both data", "POST", MAPS, config_map("k", data={"a": "v"}, binaryData={"a": "dg=="})
    )


async def values(session: Session) -> None:
    """Pods that make no sense."""
    container: dict[str, Any] = {"name": "c", "image": "i"}
    bad: dict[str, dict[str, Any]] = {
        "no containers": {"containers": []},
        "containers of one name": {"containers": [container, container]},
        "a container without a name": {"containers": [{"image": "i"}]},
        "a container without an image": {"containers": [{"name": "c"}]},
        "a request over its limit": {
            "containers": [{**container, "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}]
        },
        "a negative request": {"containers": [{**container, "resources": {"requests": {"cpu": "-1"}}}]},
        "a request that is no quantity": {"containers": [{**container, "resources": {"requests": {"cpu": "much"}}}]},
        "an unknown restart policy": {"restartPolicy": "Sometimes"},
        "a toleration with a value that exists": {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
        "an unknown toleration operator": {"tolerations": [{"key": "a", "operator": "Is"}]},
        "an unknown priority class": {"priorityClassName": "absent"},
        "a bad node name": {"nodeName": "A_b"},
        "a node selector with a bad value": {"nodeSelector": {"a": "-"}},
        "gates twice": {"schedulingGates": [{"name": "a"}, {"name": "a"}]},
        "skew nought": {
            "topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]
        },
        "an unknown affinity operator": {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Is"}]}]
                    }
                }
            }
        },
        "a port out of range": {"containers": [{**container, "ports": [{"containerPort": 70000}]}]},
        "negative grace": {
            "terminationGracePeriodSeconds": -1,
            # Said here so that a server without the Priority admission plugin answers alike.
            "priority": 0,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "a deadline of nought": {"activeDeadlineSeconds": 0},
    }
    for name, spec in bad.items():
        await session.ask(f"value: {name}", "POST", f"{PODS}?dryRun=All", pod("v", **spec))
    target = {"apiVersion": "v1", "kind": "Node", "name": ""}
    await session.quietly("POST", PODS, pod("b"))
    await session.ask(
        "value: a binding to no node", "POST", f"{PODS}/b/binding", {"metadata": {"name": "b"}, "target": target}
    )
    other = {"apiVersion": "v1", "kind": "Pod", "name": "n"}
    await session.ask(
        "value: a binding to a pod", "POST", f"{PODS}/b/binding", {"metadata": {"name": "b"}, "target": other}
    )
    await session.ask(
        "value: a binding of another name",
        "POST",
        f"{PODS}/b/binding",
        {"metadata": {"name": "c"}, "target": {"name": "n"}},
    )
    await session.ask(
        "value: a lease of no time",
        "POST",
        "/apis/coordination.k8s.io/v1/namespaces/rec-bad/leases",
        {"metadata": {"name": "l"}, "spec": {"leaseDurationSeconds": 0}},
    )
