/* The box for the next question: its draft, its mode, its one queued follower, and where Send gives way to Stop. */

const DRAFT_MS = 250;

export class Composer {
  #form;
  #box;
  #send;
  #stop;
  #queued;
  #next = null;
  #draftTimer = 0;
  #draftKey = "draft:new";
  #left;

  /** `onAsk(message)` and `onStop()` are called when the person says so. */
  constructor(form, { onAsk, onStop }) {
    this.#form = form;
    this.#box = form.querySelector("textarea");
    this.#send = form.querySelector("[data-send]");
    this.#stop = form.querySelector("[data-stop]");
    this.#queued = form.querySelector("#queued");
    this.#left = Number(form.dataset.left);
    this.#box.dataset.idleWords = this.#box.placeholder;
    form.addEventListener("submit", (event) => { event.preventDefault(); this.#submit(onAsk); });
    this.#stop.addEventListener("click", onStop);
    this.#queued.querySelector("[data-unqueue]").addEventListener("click", () => this.#takeBack());
    this.#box.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || matchMedia("(pointer: coarse)").matches) return;
      event.preventDefault();
      form.requestSubmit();
    });
    this.#box.addEventListener("input", () => { this.#refresh(); this.#keepDraft(); });
    form.addEventListener("change", ({ target }) => {
      if (target.name === "mode") this.#showMode(target);
      if (target.name === "max_credits") this.#keepWithin(target);
      if (target.name === "temporary") form.toggleAttribute("data-temporary", target.checked);
    });
    this.#openAtChosen(form.querySelector("#modes"));
    this.#closeByEnter(form.querySelector("#ceiling"));
    this.#refresh();
  }

  get box() { return this.#box; }
  get mode() { return this.#form.querySelector('input[name="mode"]:checked')?.value; }
  get isTemporary() { return this.#form.querySelector('input[name="temporary"]')?.checked ?? false; }
  /** The ceiling of the next question, where it is lower than the person's own. */
  get maxCredits() {
    const wanted = Number(this.#ceiling.value);
    return wanted < Number(this.#form.dataset.most) ? wanted : undefined;
  }
  get isRunning() { return "running" in this.#form.dataset; }

  /** Drafts are kept for each conversation; a draft of a new one moves with it. */
  belongTo(conversationId) {
    this.#draftKey = `draft:${conversationId || "new"}`;
    if (!this.#box.value) this.#box.value = read(this.#draftKey);
    this.#refresh();
  }

  /** A conversation is temporary from its first question on, or never. */
  settleTemporary() { this.#form.querySelector(".temporary")?.remove(); }

  setRunning(isRunning) {
    this.#box.dataset.idleWords = "Ask the next question";
    this.#form.toggleAttribute("data-running", isRunning);
    this.#send.hidden = isRunning;
    this.#stop.hidden = !isRunning;
    this.#stop.disabled = false;
    this.#stop.querySelector("span").textContent = "Stop";
    this.#box.placeholder = isRunning ? this.#box.dataset.runningWords : this.#box.dataset.idleWords;
    this.#refresh();
  }

  /** What a question can cost, once it is known what is left. */
  quote(left) {
    this.#left = left;
    this.#showQuote();
  }

  /** A ceiling is for one question. */
  forgetCeiling() {
    this.#ceiling.value = this.#form.dataset.most;
    this.#showQuote();
  }

  setStopping() {
    this.#stop.disabled = true;
    this.#stop.querySelector("span").textContent = "Stopping";
  }

  /** The question that waits for this answer, if any; it waits no longer. */
  takeNext() {
    const next = this.#next;
    this.#setNext(null);
    return next;
  }

  giveBack(message) {
    this.#box.value = this.#box.value ? `${message}\n${this.#box.value}` : message;
    this.#refresh();
    this.#keepDraft();
  }

  forgetDraft() {
    if (!this.#box.value) write(this.#draftKey, "");
  }

  chooseMode(place) {
    const choice = this.#form.querySelectorAll('input[name="mode"]')[place];
    if (!choice || choice.disabled) return;
    choice.checked = true;
    this.#showMode(choice);
  }

  #submit(onAsk) {
    const message = this.#box.value.trim();
    if (!message) return;
    if (this.isRunning) {
      if (this.#next !== null) return;
      this.#setNext(message);
      this.#empty();
      return;
    }
    this.#empty();
    onAsk(message);
  }

  #empty() {
    this.#box.value = "";
    this.#refresh();
    this.#keepDraft();
  }

  #takeBack() {
    const message = this.takeNext();
    if (message) this.giveBack(message);
    this.#box.focus();
  }

  #setNext(message) {
    this.#next = message;
    this.#queued.hidden = message === null;
    this.#queued.querySelector("[data-words]").textContent = message ? `“${message.length > 60 ? `${message.slice(0, 60)}…` : message}”` : "";
  }

  /** The list of modes opens at the one that is chosen; a click or Enter closes it, arrows go on choosing. */
  #openAtChosen(menu) {
    menu.addEventListener("toggle", ({ newState }) => {
      if (newState === "open") menu.querySelector("input:checked")?.focus();
    });
    menu.addEventListener("click", ({ target, detail }) => {
      if (detail && target.closest("label:not([data-unavailable])")) this.#leave(menu);
    });
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      this.#leave(menu);
    });
  }

  #leave(menu) {
    setTimeout(() => { menu.hidePopover(); this.#box.focus(); });
  }

  get #ceiling() { return this.#form.querySelector("#max-credits"); }

  #keepWithin(box) {
    const { least, most } = this.#form.dataset;
    box.value = Math.min(Math.max(Math.round(Number(box.value)) || Number(most), Number(least)), Number(most));
    this.#showQuote();
  }

  #closeByEnter(menu) {
    menu.addEventListener("toggle", ({ newState }) => { if (newState === "open") this.#ceiling.select(); });
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      this.#keepWithin(this.#ceiling);
      this.#leave(menu);
    });
  }

  #showQuote() {
    const least = this.#form.querySelector('input[name="mode"]:checked')?.dataset.least ?? this.#form.dataset.least;
    const most = this.#ceiling.value;
    let words = `from ${least}, at most ${most} credits`;
    if (this.#left < Number(least)) words = `from ${least}; you have ${this.#left}`;
    else if (Number(most) < Number(least)) words = `from ${least}; your ceiling is ${most}`;
    this.#form.querySelector("[data-quote]").textContent = words;
  }

  #showMode(choice) {
    this.#showQuote();
    this.#form.querySelector("[data-mode-title]").textContent = choice.dataset.title;
    this.#form.querySelector("[data-mode-button]").setAttribute("aria-label", `Mode: ${choice.dataset.title}`);
  }

  #refresh() {
    this.#send.disabled = !this.#box.value.trim();
  }

  #keepDraft() {
    clearTimeout(this.#draftTimer);
    this.#draftTimer = setTimeout(() => write(this.#draftKey, this.#box.value), DRAFT_MS);
  }
}

function read(key) {
  try { return localStorage.getItem(key) ?? ""; } catch { return ""; }
}

function write(key, text) {
  try {
    if (text) localStorage.setItem(key, text);
    else localStorage.removeItem(key);
  } catch { /* a draft that cannot be kept is still in the box */ }
}
