"""What Jenkins' schema of JUnit's XML (junit-10.xsd) allows, of the part that is written here."""

from xml.etree.ElementTree import Element

COUNTS = {"tests", "failures", "errors", "time"}
ATTRIBUTES = {
    "testsuites": {"name"} | COUNTS,
    "testsuite": {"name", "skipped", "timestamp", "hostname"} | COUNTS,
    "testcase": {"name", "classname", "time"},
    "failure": {"type", "message"},
}
REQUIRED = {"testsuite": {"name", "tests", "failures", "errors"}, "testcase": {"name"}}
WITHIN = {"testsuites": {"testsuite"}, "testsuite": {"testcase"}, "testcase": {"failure"}, "failure": set()}


def assert_is_junit(element: Element) -> None:
    """The element and all within it are what the schema allows."""
    assert set(element.keys()) <= ATTRIBUTES[element.tag], element.tag
    assert set(element.keys()) >= REQUIRED.get(element.tag, set()), element.tag
    for child in element:
        assert child.tag in WITHIN[element.tag]
        assert_is_junit(child)
