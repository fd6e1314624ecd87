/* The page somebody comes back to after paying: it asks our own server until what was bought has arrived. */
import { fragment } from "./net.js";

const LOOK_MS = 1_500;
const LOOKS = 80;
const FRESH = ["purchase", "standing", "usage", "ledger", "sidebar-balance"];

function show(page) {
  for (const id of FRESH) {
    const fresh = page.getElementById(id);
    if (fresh) document.getElementById(id)?.replaceChildren(...[...fresh.childNodes].map((node) => document.adoptNode(node)));
  }
}

async function look(left) {
  const page = await fragment(location.pathname + location.search);
  const isAwaited = !page || page.getElementById("purchase")?.hasAttribute("data-awaited");
  if (!isAwaited) show(page);
  else if (left > 1) setTimeout(look, LOOK_MS, left - 1);
}

setTimeout(look, LOOK_MS, LOOKS);
