// Before anything is drawn: the colours that the reader chose last time. It is no module, so it runs
// where the page is opened as a file, too, and says that this is not enough.
try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
} catch {
  // A browser that keeps nothing shows the colours of the system.
}
if (location.protocol === "file:") {
  addEventListener("DOMContentLoaded", () => {
    document.getElementById("status").textContent =
      "Opened as a file the page cannot load the compiler; serve its folder: python3 -m http.server";
  });
}
