/* The memory page: an item and its twin are marked together, and a clamped item opens in place. */

const tracks = document.querySelector("[data-tracks]");

function mark(ref, isMarked) {
  for (const twin of tracks.querySelectorAll(`[data-ref="${CSS.escape(ref)}"]`)) twin.toggleAttribute("data-linked", isMarked);
}

for (const [start, end] of [["pointerover", "pointerout"], ["focusin", "focusout"]]) {
  tracks?.addEventListener(start, ({ target }) => { const item = target.closest("[data-ref]"); if (item) mark(item.dataset.ref, true); });
  tracks?.addEventListener(end, ({ target }) => { const item = target.closest("[data-ref]"); if (item) mark(item.dataset.ref, false); });
}

tracks?.addEventListener("click", (event) => {
  const link = event.target.closest("[data-whole]");
  const clamped = link?.parentElement.querySelector(".clamped");
  if (!clamped || clamped.textContent.length >= 2_000) return; // longer than what came with the page: the link fetches it
  event.preventDefault();
  clamped.classList.remove("clamped");
  link.remove();
});
