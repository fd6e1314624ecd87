/* The settings page: copying the new key, asking before one is revoked, and following an export that is being made. */
import { copy } from "./code_figures.js";
import { fragment } from "./net.js";

const LOOK_MS = 1_500;
const box = document.querySelector("[data-export]");

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy-from]");
  if (button) copy(document.getElementById(button.dataset.copyFrom).textContent, button);
});

document.addEventListener("click", (event) => {
  const dialog = document.getElementById("revoke");
  if (event.target.closest("[data-close]")) dialog?.close();
  const link = event.target.closest("[data-revoke]");
  if (!link || !dialog) return;
  event.preventDefault();
  dialog.querySelector("[data-title]").textContent = link.dataset.revoke;
  dialog.querySelector("form").action = link.href;
  dialog.showModal();
});

async function look() {
  const page = await fragment(box.dataset.export);
  const fresh = page?.getElementById("export-state");
  if (fresh) box.replaceChildren(fresh);
  follow();
}

function follow() {
  const isUnderWay = box.querySelector("[data-under-way]") !== null;
  document.querySelector("[data-export-form]").hidden = isUnderWay;
  if (isUnderWay) setTimeout(look, LOOK_MS);
}

if (box) follow();
