/* Wrap and Copy on code figures, and copying in general. */

export function dressCode(root) {
  const buttons = document.getElementById("code-buttons-template");
  if (!buttons) return;
  for (const caption of root.querySelectorAll("figure.code > figcaption")) {
    if (!caption.querySelector("button")) caption.append(buttons.content.cloneNode(true));
  }
}

export async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    return false;
  }
  button.dataset.copied = "";
  setTimeout(() => delete button.dataset.copied, 1600);
  return true;
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-wrap], [data-copy-code]");
  if (!button) return;
  const pre = button.closest("figure").querySelector("pre");
  if ("wrap" in button.dataset) button.setAttribute("aria-pressed", pre.toggleAttribute("data-wrapped"));
  else copy(pre.textContent, button);
});
