/* The cited passage beside the chat: opened by its number, stepped through, closed, and the focus given back. */
import { fragment } from "./net.js";

export class PassagePanel {
  #panel = document.getElementById("cited-passage");
  #body = this.#panel.querySelector("[data-passage-body]");
  #link = null;

  constructor({ thread }) {
    thread.addEventListener("click", (event) => {
      const link = event.target.closest("[data-panel]");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.show(link);
    });
    this.#panel.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      if ("passageClose" in button.dataset) this.close();
      else this.step(Number(button.dataset.passageStep));
    });
    this.#panel.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      this.close();
    });
  }

  get isOpen() { return !this.#panel.hidden; }

  async show(link) {
    this.#mark(link);
    const page = await fragment(link.dataset.panel);
    if (this.#link !== link) return; // another one was pressed meanwhile
    const view = page?.querySelector("[data-passage-view]");
    if (!view) { location.assign(link.href); return; }
    const count = this.#links().length;
    this.#panel.querySelector("[data-n]").textContent = link.dataset.passage;
    this.#panel.querySelector("[data-of]").textContent = count > 1 ? `Source ${link.dataset.passage} of ${count}` : "Source";
    for (const button of this.#panel.querySelectorAll("[data-passage-step]")) button.hidden = count < 2;
    this.#body.replaceChildren(document.adoptNode(view));
    this.#panel.hidden = false;
    this.#panel.focus({ preventScroll: true });
    this.#body.querySelector("mark")?.scrollIntoView({ block: "center" });
  }

  step(by) {
    const links = this.#links();
    const here = links.findIndex((link) => link.dataset.passage === this.#link?.dataset.passage);
    const next = links[(here + by + links.length) % links.length];
    if (next) this.show(next);
  }

  close() {
    const link = this.#link;
    this.#panel.hidden = true;
    this.#mark(null);
    link?.focus();
  }

  /** One link for each source of the answer, in the order of their numbers. */
  #links() {
    const all = this.#link?.closest(".run")?.querySelectorAll("[data-panel]") ?? [];
    const first = new Map();
    for (const link of all) if (!first.has(link.dataset.passage)) first.set(link.dataset.passage, link);
    return [...first.values()].sort((one, other) => one.dataset.passage - other.dataset.passage);
  }

  #mark(link) {
    this.#link?.removeAttribute("aria-current");
    link?.setAttribute("aria-current", "true");
    this.#link = link;
  }
}
