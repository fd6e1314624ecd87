/* One run while it is being answered: events become the same markup that the server gives for its history. */
import { dressCode } from "./code_figures.js";
import { change, fragment } from "./net.js";

const FRAGMENT_TRIES = 4;
const WAITS_MINUTES = 10;

function clone(id) {
  return document.getElementById(id).content.cloneNode(true);
}

function nodesOf(html) {
  const template = document.createElement("template");
  template.innerHTML = html; // made and sanitised by our server, never by a model
  return template.content;
}

function seconds(milliseconds) {
  if (milliseconds < 1) return "under 1 ms";
  return milliseconds < 100 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
}

export function credits(count) {
  return `${count.toLocaleString("en")} credit${count === 1 ? "" : "s"}`;
}

/** The open block without the marks that will turn into looks when it closes. */
function unmarked(text) {
  const bare = text.replace(/^(\s*)[-*+] /gm, "$1• ").replace(/\*\*|`/g, "").replace(/^#{1,6} /gm, "").replace(/^> ?/gm, "")
    .replace(/(^|[\s(“"])\*(?=\S)([^*\n]+?)\*(?!\w)/gm, "$1$2");
  if (!bare.startsWith("|")) return bare;
  return bare.replace(/^\|[\s|:-]*(\n|$)/gm, "").replace(/^\|\s*|\s*\|\s*$/gm, "").replace(/\s*\|\s*/g, "  ·  ");
}

export class LiveRun {
  #article;
  #prose;
  #activity;
  #status;
  #open = "";
  #openNode = null;
  #isCode = false;
  #frame = 0;
  #turn = null;
  #thinkingSince = 0;
  #onGrowth;

  /** `onGrowth()` is called after the page got longer, at most once a frame. */
  constructor(article, { onGrowth }) {
    this.#article = article;
    this.#prose = article.querySelector(".prose");
    this.#activity = article.querySelector(".activity");
    this.#status = article.querySelector("[data-status]");
    this.#onGrowth = onGrowth;
  }

  get article() { return this.#article; }
  get runId() { return this.#article.dataset.runId; }

  say(words) {
    if (this.#status && this.#status.textContent !== words) this.#status.textContent = words;
  }

  /** Takes one event; true when it was the last one. */
  take({ type, data }) {
    switch (type) {
      case "run_started": this.#start(data); return false;
      case "status_update": this.#progress(data); return false;
      case "reasoning_chunk": this.#think(data.text); return false;
      case "content_chunk": this.#write(data); return false;
      case "content_replaced": this.#rewrite(data); return false;
      case "tool_call_start": this.#startTool(data); return false;
      case "tool_call_result": this.#endTool(data); return false;
      case "confirmation_required": this.#askPerson(data); return false;
      case "message_complete": this.#finish(data.html ?? []); return true;
      case "error": this.#finish(data.html ?? []); return true;
      default: return false;
    }
  }

  /** Puts what only the server knows in its place: fold, receipt, notices, buttons. */
  async settle() {
    for (let tries = 0; tries < FRAGMENT_TRIES; tries += 1) {
      const settled = (await fragment(`/chat/runs/${this.runId}/`))?.querySelector("article.run");
      if (settled && settled.dataset.state !== "running" && settled.dataset.state !== "queued") {
        this.#adopt(settled);
        return true;
      }
      await new Promise((resolve) => setTimeout(resolve, 250 * 2 ** tries));
    }
    this.say("Done. Reload the page to see the receipt.");
    return false;
  }

  #start({ query_id: queryId }) {
    const article = this.#article;
    article.id = article.dataset.queryId = queryId;
    article.setAttribute("aria-label", `Question ${queryId.slice(1)}`);
    article.querySelector(".margin-id").textContent = queryId;
    this.say("Reading the question");
  }

  #think(text) {
    let fold = this.#activity.querySelector(".reasoning:not([data-done])");
    if (!fold) {
      this.#activity.append(clone("reasoning-template"));
      fold = this.#activity.lastElementChild;
      this.#thinkingSince = performance.now();
      this.say("Thinking");
    }
    fold.lastElementChild.append(text);
    this.#grew();
  }

  #endThought() {
    const fold = this.#activity.querySelector(".reasoning:not([data-done])");
    if (!fold) return;
    fold.dataset.done = "";
    const took = Math.max(1, Math.round((performance.now() - this.#thinkingSince) / 1000));
    fold.querySelector("[data-thought]").textContent = `Thought for ${took} s`;
  }

  #write({ text, turn, blocks, open }) {
    this.#endThought();
    if (this.#turn !== null && turn !== this.#turn) this.#putAside();
    this.#turn = turn;
    if (blocks?.length) {
      this.#close(blocks);
      this.#open = open;
    } else {
      this.#open += open ?? text;
    }
    this.say("Writing");
    this.#grew();
  }

  #rewrite({ blocks, open, text, reason }) {
    this.#prose.replaceChildren();
    this.#openNode = null;
    this.#close(blocks ?? []);
    this.#open = open ?? text;
    this.say(`A part was removed: ${reason}.`);
    this.#grew();
  }

  #close(blocks) {
    this.#openNode?.remove();
    this.#openNode = null;
    this.#open = "";
    for (const html of blocks) {
      const nodes = nodesOf(html);
      dressCode(nodes);
      this.#prose.append(nodes, "\n");
    }
  }

  /** Words before a tool call are no part of the answer; they stand with the activity. */
  #putAside() {
    this.#flush();
    if (!this.#prose.hasChildNodes()) return;
    const words = document.createElement("div");
    words.className = "working prose";
    words.append(...this.#prose.childNodes);
    words.querySelector(".open-block")?.classList.remove("open-block");
    this.#activity.append(words);
    this.#open = "";
    this.#openNode = null;
  }

  #startTool({ id, name, label, arguments: given }) {
    this.#endThought();
    this.#putAside();
    let cards = this.#activity.lastElementChild;
    if (!cards?.classList.contains("tool-cards")) {
      cards = document.createElement("div");
      cards.className = "tool-cards";
      this.#activity.append(cards);
    }
    cards.append(clone("card-template"));
    const card = cards.lastElementChild;
    card.dataset.callId = id;
    card.dataset.label = label;
    card.setAttribute("aria-label", `${label}: running`);
    card.querySelector(".label").textContent = label;
    card.querySelector("code").textContent = name;
    card.querySelector(".body p").textContent = Object.entries(given ?? {})
      .map(([key, value]) => `${key}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join(" · ");
    this.say(label);
    this.#grew();
  }

  /** The call waits for the person: every argument is shown whole, and the focus is never on consent. */
  #askPerson({ id, arguments: given, token }) {
    const card = this.#activity.querySelector(`[data-call-id="${CSS.escape(id)}"]`);
    if (!card) return;
    card.dataset.state = "confirm";
    card.setAttribute("aria-label", `${card.dataset.label}: needs you`);
    card.querySelector(".state").replaceChildren(clone("waiting-template"));
    const asked = clone("confirm-template");
    const list = asked.querySelector(".arguments");
    for (const [name, value] of Object.entries(given)) {
      const [term, words] = [document.createElement("dt"), document.createElement("dd")];
      term.textContent = name;
      words.textContent = typeof value === "string" ? value : JSON.stringify(value, null, 2);
      list.append(term, words);
    }
    const until = new Date(Date.now() + WAITS_MINUTES * 60_000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
    asked.querySelector("[data-until]").append(until);
    card.querySelector(".body p").textContent = "";
    card.querySelector(".body").append(asked.querySelector("div[data-confirm]"));
    card.append(asked.querySelector("footer"));
    for (const button of card.querySelectorAll("[data-approve]")) {
      button.addEventListener("click", () => this.#decide(card, { call_id: id, token, approve: button.dataset.approve === "yes" }));
    }
    this.say(`${card.dataset.label}: waits for you`);
    card.querySelector('[data-approve="no"]').focus();
    this.#grew();
  }

  async #decide(card, answer) {
    const footer = card.querySelector("footer[data-confirm]");
    for (const button of footer.querySelectorAll("button")) button.disabled = true;
    const error = await change("POST", `/api/runs/${this.runId}/confirm`, answer);
    const now = new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
    footer.textContent = error ? error.message : answer.approve ? `Sent by you, ${now}` : "Not sent";
  }

  /** What a call says while it runs stands on its card: the message begins with the card's label. */
  #progress({ phase, message }) {
    this.say(message);
    if (phase !== "tools") return;
    for (const card of this.#activity.querySelectorAll(".tool-card[data-state=running]")) {
      const label = `${card.dataset.label.slice(0, 100)}: `;
      if (message.startsWith(label)) card.querySelector(".body .caption").textContent = message.slice(label.length);
    }
  }

  #endTool({ id, ok, summary, duration_ms: took, credits: cost, error }) {
    const card = this.#activity.querySelector(`[data-call-id="${CSS.escape(id)}"]`);
    if (!card) return;
    for (const asked of card.querySelectorAll("[data-confirm]")) asked.remove();
    card.dataset.state = ok ? "ok" : "failed";
    card.setAttribute("aria-label", `${card.dataset.label}: ${ok ? "done" : "failed"}`);
    card.querySelector(".state").replaceChildren(clone(ok ? "done-template" : "failed-template"));
    card.querySelector(".body p").textContent = ok ? summary : error ?? summary;
    card.querySelector(".body .caption").textContent = ok ? `${seconds(took)} · ${credits(cost)}` : "not charged";
    this.#grew();
  }

  #finish(html) {
    this.#endThought();
    this.#flush();
    const rest = Array.isArray(html) ? html : [html];
    if (rest.length) this.#close(rest);
    this.#openNode?.classList.remove("open-block");
    this.#openNode?.querySelector(".open-block")?.classList.remove("open-block");
    this.say("Writing the receipt");
    this.#grew();
  }

  #adopt(settled) {
    const article = this.#article;
    dressCode(settled);
    const fresh = settled.querySelector(".prose");
    const squeezed = (node) => node.textContent.replace(/\s+/g, "");
    const isRicher = fresh.querySelectorAll("a").length > this.#prose.querySelectorAll("a").length;
    if (isRicher || squeezed(fresh) !== squeezed(this.#prose)) this.#prose.replaceWith(document.adoptNode(fresh));
    const wasOpen = [...article.querySelectorAll(".activity details")].some((fold) => fold.open);
    const fold = settled.querySelector(".activity > .fold");
    if (fold) {
      const cards = fold.querySelector(".tool-cards");
      for (const words of this.#activity.querySelectorAll(".working")) cards.before(words);
      fold.open = wasOpen;
    }
    const thoughts = this.#activity.querySelectorAll(".reasoning");
    this.#activity.replaceChildren(...thoughts, ...settled.querySelector(".activity").childNodes);
    article.querySelector(".status-line")?.remove();
    article.querySelector(".margin-id").replaceWith(settled.querySelector(".margin-id"));
    article.querySelector(".answer").append(...settled.querySelectorAll(".answer > [data-sources], .answer > .ending"));
    for (const name of ["state", "parent"]) article.dataset[name] = settled.dataset[name];
    article.removeAttribute("aria-busy");
    this.#onGrowth();
  }

  #grew() {
    if (this.#frame) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#flush();
      this.#onGrowth();
    });
  }

  #flush() {
    if (!this.#open) return;
    const fence = /^(?:`{3,}|~{3,})[ \t]*([^\n`]*)\n/.exec(this.#open);
    if (!this.#openNode || Boolean(fence) !== this.#isCode) this.#openBlock(fence);
    const shown = fence ? this.#open.slice(fence[0].length) : unmarked(this.#open);
    const text = this.#openNode.querySelector("code")?.firstChild ?? this.#openNode.firstChild;
    if (shown.startsWith(text.data)) text.appendData(shown.slice(text.data.length));
    else text.data = shown;
  }

  #openBlock(fence) {
    this.#openNode?.remove();
    this.#isCode = Boolean(fence);
    const node = document.createElement(fence ? "figure" : "p");
    node.className = fence ? "code" : "open-block";
    if (fence) {
      const caption = document.createElement("figcaption");
      caption.append(Object.assign(document.createElement("span"), { textContent: fence[1].trim().split(/\s/)[0] || "Text" }));
      const pre = document.createElement("pre");
      const code = document.createElement("code");
      code.className = "open-block";
      code.append(document.createTextNode(""));
      pre.append(code);
      node.append(caption, pre);
    } else {
      node.append(document.createTextNode(""));
    }
    this.#openNode = node;
    this.#prose.append(node);
  }
}
