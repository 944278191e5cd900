"""What `policyengine bench` measures; nothing here judges a figure.

    decisions, memory, language      this process alone, CPU time
    end_to_end                       an API server, and a scheduler in a process of its own, watched from here
    limit_process                    in the scheduler's place, a client that decides nothing
    records                          results as JSON, saved and compared by ratios; page makes docs/performance.md
"""
