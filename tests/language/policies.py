"""Whole policy texts for properties: one of every member, and random damage done to it."""

from __future__ import annotations

from hypothesis import strategies as st

EVERYTHING = """\
import "safe" as s
// shared
library "safe" {
  /// the most there may be
  param max: int = 3 range [0, 10]
  function f(a: int, b: list(string)): map(string, int) = {"a": a}
}

policy "p" {   # trailing
  scheduler "policy-scheduler"
  base kubernetes
  share 2
  param mode: string = "A" values ["A", 'B']
  let group = pod.labels[?"podGroup"].orValue("")
  queue { order by toInt(pod.labels[?"x"]).orValue(0) desc missing last, pod.qos, backoff 1s .. 10s flush 5min
    fair by pod.namespace weight {"a": 2} }
  use NodeResourcesFit weight 2 { strategy: "MostAllocated", resources: [{name: "cpu", weight: 1}] }
  disable ImageLocality
  filter "room" when group != "" && !(s.max > -1) {
    require node.free.memory - pod.requests.memory >= 2Gi * 1.5   // why
      else "needs {pod.requests.memory}, {{has}} {node.free.memory}"
      on error false
    require a ? [1, 2,
      3].all(x, x > 0) : {"k": .5}[?"k"].hasValue()
  }
  score "pack" weight s.w when true normalize minmax reverse
    = 100 * ratio(node.used.cpu, node.allocatable.cpu) % 7u on error 0
  gang "g" when group != "" { key: pod.namespace + "/" + group, min: 1 timeout: 60s waits: 10min }
  quota "q" when pod.namespace == "team" { guarantee: {cpu: 4, memory: 8Gi} limit: {cpu: 8} borrow: true }
  permit "w" { delay: 5s until: now > x timeout: 1min }
  preempt when a { victims: victim.priority < 3 order by victim.priority, victim.startedAt desc maxVictims: 3 }
  on postBind when a log "bound {pod.name}"
  bind { annotations: {"a/b": "c {node.name}", d: r'x'} }

  test "t" {
    given now "2026-01-05T18:30:00+01:00"
    given param s.max = 4
    given node "a" { allocatable: {cpu: 4, memory: 8Gi},
      labels: {} }
    given pod "p" on "a" {
      // a comment
      labels: {"x": "high"}
      requests: {cpu: 500m}
    }
    after 10s
    expect "p" on "a" expect "p" before "q"
    expect "p" rejected on "a" by "room"
    expect "p" waits
    expect that placed("p") && score("pack", "p", "a") >= 3
  }
}

overlay "o" on "p" when pod.namespace in ["x"] {
  let y = .absolute.?maybe.`quoted name`
}
"""

_SIGNS = ["(", ")", "[", "]", "{", "}", "=", "==", ",", ";", ".", "..", "?", "-", "!", "//", "#", "///"]
_QUOTES = ['"', "'", '"""', "`", "b'", 'r"', "\\"]
_WORDS = ["\n", "\r\n", "\t", "\0", " when ", " and ", ' filter "f" ', 'policy "x" {', "let x = 1\n", "on error"]
_ODD = ["1h30min", "5x", "0x", "1e", "é", "“", "\u00a0", "\ufeff"]
BITS = st.sampled_from([*_SIGNS, *_QUOTES, *_WORDS, *_ODD])


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """The policy with pieces cut out, doubled or put in."""
    text = EVERYTHING
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, len(text)))
        length = draw(st.integers(0, 30))
        action = draw(st.sampled_from(["cut", "double", "insert"]))
        if action == "cut":
            text = text[:at] + text[at + length :]
        elif action == "double":
            text = text[: at + length] + text[at:]
        else:
            text = text[:at] + draw(BITS) + text[at:]
    return text
