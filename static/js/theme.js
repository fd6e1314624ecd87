/* Light or dark: the choice is kept in a cookie for the first paint, and in the profile when someone is signed in. */
import { post } from "./net.js";

const root = document.documentElement;
const YEAR = 31_536_000;

function isDark() {
  return root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

async function choose(theme) {
  root.dataset.theme = theme;
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `theme=${theme}; Path=/; Max-Age=${YEAR}; SameSite=Lax${secure}`;
  const form = document.querySelector("form[data-theme-form]");
  if (form) await post(form.action, { theme });
}

document.addEventListener("click", (event) => {
  const toggle = event.target.closest("[data-theme-toggle]");
  if (!toggle) return;
  event.preventDefault();
  choose(isDark() ? "light" : "dark");
});
