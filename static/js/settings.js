/* The settings page: copying the new key, nothing else. */
import { copy } from "./code_figures.js";

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy-from]");
  if (button) copy(document.getElementById(button.dataset.copyFrom).textContent, button);
});
