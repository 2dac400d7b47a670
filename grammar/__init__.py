"""The grammar of the language, as data; read by `dsfc.syntax` through `importlib.resources`."""
