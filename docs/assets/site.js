// A wide table scrolls in a box of its own. The keyboard must reach that box.
for (const event of ["load", "resize"]) {
  addEventListener(event, () => setTimeout(() => {
    document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code").forEach(box => {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    });
  }));
}
// Buttons that copy a command: each needs a name of its own.
new MutationObserver(() => {
  document.querySelectorAll("nav.md-code__nav").forEach((nav, i) => {
    if (!nav.ariaLabel) nav.ariaLabel = `Code ${i + 1}`;
  });
}).observe(document.documentElement, { childList: true, subtree: true });
