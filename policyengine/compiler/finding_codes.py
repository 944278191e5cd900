"""The findings of the compiler: their codes and pages. What the checker can say alone has its codes there."""

from __future__ import annotations

from policyengine.language.diagnostics import register

WRONG_PARAM = "PE2901"
WRONG_ARGUMENTS = "PE2902"
FAILED_TEST = "PE2950"

register(
    {
        WRONG_PARAM: (
            "a parameter cannot have the value given",
            "A param is set from outside (`--param`, `params.yaml`) to a value of its type, within its `range` or\n"
            "among its `values`. Names of params that the policy does not have are refused.",
        ),
        WRONG_ARGUMENTS: (
            "a plugin refuses its arguments",
            "The arguments fit the plugin's schema one by one, but not together. The message is the plugin's.",
        ),
        FAILED_TEST: (
            "a test of the policy fails",
            "The tests in a policy are run before it serves; what fails them is not loaded, and what served before\n"
            "goes on. `policyengine test` shows what was expected, what happened and why.",
        ),
    }
)
