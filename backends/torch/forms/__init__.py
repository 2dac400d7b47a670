"""The forms as torch runs them: a file per form, whose row says how its operators are printed."""
