"""The pages that people look at, under `/ui/`: rendered here, readable without JavaScript, and read-only.

`source` says what is shown: the scheduler that runs, a cluster in a file, a recording at a moment (`recorded`), a
cluster that is `watched`. A file a page makes what its template shows of a `Moment`; `site` serves them, `viewers`
keeps open ones fresh.
"""
