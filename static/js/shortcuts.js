/* Keys of the conversation page. Single letters act only when nothing is being written. */

const FIELDS = "input, textarea, select, [contenteditable]";

export function listenToKeys({ thread, composer, passage, stop, edit, askAgain, copyAnswer }) {
  const runs = () => [...thread.querySelectorAll(":scope > .run")];
  const focused = () => document.activeElement?.closest?.(".run") ?? runs().at(-1);

  function move(step) {
    const all = runs();
    const here = all.indexOf(document.activeElement?.closest?.(".run"));
    const next = here < 0 ? all.at(-1) : all[Math.min(Math.max(here + step, 0), all.length - 1)];
    next?.focus();
    next?.scrollIntoView({ block: "start" });
  }

  function letter(key) {
    const run = focused();
    if (key === "/") composer.box.focus();
    else if (passage.isOpen && (key === "[" || key === "]")) passage.step(key === "[" ? -1 : 1);
    else if (key === "j" || key === "k") move(key === "j" ? 1 : -1);
    else if (!run) return false;
    else if (key === "c" && run.querySelector("[data-copy]")) copyAnswer(run.querySelector("[data-copy]"));
    else if (key === "r" && run.querySelector("[data-again]")) askAgain(run);
    else if (key === "e" && run.querySelector("[data-edit]")) edit(run);
    else return false;
    return true;
  }

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    const isWriting = event.target.closest?.(FIELDS);
    if (event.key === "Escape") {
      if (passage.isOpen) passage.close();
      else if (!document.querySelector(":popover-open")) stop();
    } else if ((event.ctrlKey || event.metaKey) && event.shiftKey && event.key.toLowerCase() === "o") {
      event.preventDefault();
      location.assign("/");
    } else if (event.altKey && /^[1-5]$/.test(event.key)) {
      event.preventDefault();
      composer.chooseMode(Number(event.key) - 1);
    } else if (event.altKey && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
      const version = document.activeElement?.closest?.(".run")
        ?.querySelector(`[data-version="${event.key === "ArrowLeft" ? "before" : "after"}"]`);
      if (version) { event.preventDefault(); version.click(); }
    } else if (event.key === "ArrowUp" && event.target === composer.box && !composer.box.value && runs().length) {
      event.preventDefault();
      edit(runs().at(-1));
    } else if (!isWriting && !event.ctrlKey && !event.metaKey && !event.altKey && letter(event.key.toLowerCase())) {
      event.preventDefault();
    }
  });
}
