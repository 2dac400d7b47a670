"""Reports: one mixer, or several side by side, as one HTML file that loads nothing.

| file          | what it holds                                                  |
|---------------|----------------------------------------------------------------|
| `subject.py`  | a mixer and all that a report says of it                       |
| `sections.py` | the sections in their order: title, definition, body           |
| `html.py`     | tables, figures, paragraphs                                    |
| `pictures.py` | charts of analyses                                             |
| `formulas.py` | definitions and matrices as MathML                             |
| `page.py`     | the file                                                       |
"""
