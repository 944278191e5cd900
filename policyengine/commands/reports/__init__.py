"""What `plan`, `tune` and `simulate` found, as a person reads it: tables on a terminal, Markdown, pages and pictures.

| file | |
|---|---|
| `html_page` | a page that loads nothing |
| `plan_report`, `plan_picture` | of `plan` |
| `tune_report` | of `tune` |
| `simulate_table`, `simulate_picture` | of `simulate` |
"""
