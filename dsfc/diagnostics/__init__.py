"""Everything the compiler says to its user: codes and their pages, collecting, rendering."""
