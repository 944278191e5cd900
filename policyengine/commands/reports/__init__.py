"""What `plan`, `tune` and `simulate` found, as a person reads it: tables on a terminal, Markdown, pages and pictures.

| file | |
|---|---|
| `tables` | lines and tables on a terminal |
| `html_page` | a page that loads nothing |
| `plan_text`, `plan_page`, `plan_picture` | of `plan` |
| `tune_text`, `tune_page` | of `tune` |
| `simulate_table`, `simulate_picture` | of `simulate` |
"""
