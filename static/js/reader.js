/* The document reader: comes to rest at the passage, and goes on reading in place. */
import { fragment } from "./net.js";

const reader = document.querySelector(".reader");
const target = document.getElementById("passage");
const outline = document.querySelector("[data-outline]");

if (matchMedia("(width < 60rem)").matches) outline?.removeAttribute("open");

function rest(element) {
  element.scrollIntoView({ block: "start" });
  element.focus({ preventScroll: true });
}

if (target && (!location.hash || location.hash === "#passage")) rest(target);
const here = outline?.querySelector("[aria-current]");
for (const box of [outline?.querySelector("ol"), outline?.closest("nav")]) {
  if (!here || !box) continue;
  const distance = here.getBoundingClientRect().top - box.getBoundingClientRect().top;
  box.scrollTop += distance - box.clientHeight / 2; // the box alone, never the page
}

reader?.addEventListener("click", async (event) => {
  const link = event.target.closest("[data-earlier], [data-later]");
  if (!link) return;
  event.preventDefault();
  link.setAttribute("aria-busy", "true");
  const page = await fragment(link.href);
  const fresh = page?.querySelector(".part");
  if (!fresh) { location.assign(link.href); return; }
  const here = link.closest(".part"), line = link.parentElement;
  if ("later" in link.dataset) {
    fresh.querySelector("[data-earlier]")?.parentElement.remove();
    line.remove();
    here.after(fresh);
    fresh.tabIndex = -1;
    fresh.focus({ preventScroll: true });
  } else {
    fresh.querySelector("[data-later]")?.parentElement.remove();
    const height = document.documentElement.scrollHeight;
    line.remove();
    here.before(fresh);
    scrollBy({ top: document.documentElement.scrollHeight - height, behavior: "instant" });
  }
});
