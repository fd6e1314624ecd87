/* Beside the composer: why a question was not taken, and what can be done about it. */
import { fragment } from "./net.js";

const LINKS = {
  insufficient_credits: () => ["See options", "/billing/"],
  conversation_busy: () => ["Show that answer", location.pathname],
  run_conflict: () => ["Reload", location.pathname],
  unauthenticated: () => ["Sign in", `/accounts/login/?next=${encodeURIComponent(location.pathname)}`],
};

export class Refusals {
  #place;
  #shown = 0;

  constructor(place) { this.#place = place; }

  /** Says why, in place of what stood there; with null nothing stands there any more. */
  async show(error) {
    const mine = this.#shown += 1;
    this.#place.replaceChildren();
    if (!error) return;
    const panel = error.code === "insufficient_credits" ? await waysOut() : null;
    if (mine === this.#shown) this.#place.append(panel ?? banner(error));
  }
}

/** What to buy and when the day begins anew, as the server knows it now. */
async function waysOut() {
  const panel = (await fragment("/billing/ways-out/"))?.querySelector(".ways-out");
  return panel ? document.adoptNode(panel) : null;
}

function banner(error) {
  const made = document.createElement("div");
  made.className = "banner";
  made.dataset.tone = "caution";
  const words = document.createElement("p");
  words.textContent = [error.message, again(error)].filter(Boolean).join(" ");
  made.append(words);
  if (LINKS[error.code]) {
    const [text, href] = LINKS[error.code]();
    made.append(Object.assign(document.createElement("a"), { textContent: text, href, className: "button button-small" }));
  }
  return made;
}

/** Limits that open again soon; the others say so themselves. */
function again({ code, details }) {
  if (code !== "rate_limited" || !details?.resets_at) return "";
  return `Try again in ${Math.max(1, Math.ceil((new Date(details.resets_at) - Date.now()) / 1000))} s.`;
}
