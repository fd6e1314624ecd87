/* The page follows a growing answer until the reader does anything else, and again when the reader comes back. */

const NEAR_PX = 80;

export class FollowEnd {
  #isFollowing = false;
  #hasNew = false;
  #jump;
  #dock;

  constructor({ jump, dock }) {
    this.#jump = jump;
    this.#dock = dock;
    const leave = () => { this.#isFollowing = false; };
    addEventListener("wheel", (event) => { if (event.deltaY < 0) leave(); }, { passive: true });
    addEventListener("touchmove", leave, { passive: true });
    addEventListener("keydown", (event) => {
      if (event.key === "End" && !event.target.closest("textarea, input")) this.resume();
      else if (["PageUp", "PageDown", "ArrowUp", "ArrowDown", "Home"].includes(event.key)) leave();
    });
    document.addEventListener("selectionchange", () => {
      const selection = getSelection();
      if (selection && !selection.isCollapsed && selection.anchorNode?.parentElement?.closest(".thread")) leave();
    });
    addEventListener("scroll", () => this.#show(), { passive: true });
    jump.addEventListener("click", () => this.resume());
  }

  /** The question goes to the top of the view, once. */
  begin(article) {
    for (const other of document.querySelectorAll(".run[data-room]")) if (other !== article) delete other.dataset.room;
    article.dataset.room = "";
    article.scrollIntoView({ block: "start" });
    this.#isFollowing = true;
  }

  grew() {
    if (this.#isFollowing) {
      const below = this.#below();
      if (below > 0) scrollBy(0, below);
    } else {
      this.#hasNew = true;
    }
    this.#show();
  }

  resume() {
    const below = this.#below();
    if (below > 0) scrollBy(0, below);
    this.#isFollowing = true;
    this.#show();
  }

  #below() {
    const last = document.querySelector(".thread > .run:last-of-type .answer");
    return last ? last.getBoundingClientRect().bottom - this.#dock.getBoundingClientRect().top + 16 : 0;
  }

  #show() {
    if (this.#isFollowing || this.#below() <= NEAR_PX) this.#hasNew = false;
    this.#jump.hidden = !this.#hasNew;
  }
}
