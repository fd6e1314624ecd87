/* The conversation page: asking, watching, stopping, asking again. */
import { copy, dressCode } from "./code_figures.js";
import { Composer } from "./composer.js";
import { openMenu } from "./conversation_menu.js";
import { FollowEnd } from "./follow_end.js";
import { credits, LiveRun } from "./live_run.js";
import { fragment, isSignedIn, post } from "./net.js";
import { PassagePanel } from "./passage.js";
import { Refusals } from "./refusals.js";
import { RunSocket } from "./run_socket.js";
import { listenToKeys } from "./shortcuts.js";

const page = document.getElementById("main");
const thread = page.querySelector(".thread");
const announcer = document.getElementById("announcer");
const dock = page.querySelector(".composer-dock");
const follow = new FollowEnd({ jump: document.getElementById("jump"), dock });
const refusals = new Refusals(document.getElementById("refusal"));
const refuse = (error) => refusals.show(error);
const composer = new Composer(document.getElementById("composer"), { onAsk: ask, onStop: stop });
const menu = openMenu({ page, onChange: refreshSidebar, refuse });
let live = null; // the run that is being answered: { run, message, away, isAgain }

const socket = new RunSocket({ onFrame: take, onLine });

function announce(words) { announcer.textContent = words; }

function runs() { return [...thread.querySelectorAll(":scope > .run")]; }

function ask(message, { parent, after, isAgain = false } = {}) {
  refuse(null);
  const shown = runs();
  const body = { run_id: crypto.randomUUID(), message, mode: composer.mode, max_credits: composer.maxCredits };
  if (page.dataset.conversationId) {
    body.conversation_id = page.dataset.conversationId;
    const last = shown.at(-1)?.dataset.queryId;
    body.parent = parent !== undefined ? parent : last ? `${last}-r` : null;
  } else if (composer.isTemporary) {
    body.temporary = true;
  }
  const article = document.getElementById("run-template").content.firstElementChild.cloneNode(true);
  article.dataset.runId = body.run_id;
  article.querySelector(".question").textContent = message;
  const replaced = after ? shown.slice(shown.indexOf(after)) : [];
  const starters = document.getElementById("starters");
  const away = starters ? [...replaced, starters] : replaced;
  for (const old of away) old.remove();
  thread.append(article);
  watch(article, { message, away, isAgain });
  if (document.activeElement === document.body) focusBox();
  follow.begin(article);
  announce("Sent");
  socket.ask(body);
}

function watch(article, { message, away, isAgain }) {
  live = { run: new LiveRun(article, { onGrowth: () => follow.grew() }), message, away, isAgain };
  setRunning(true);
}

/** One question at a time: while it runs, nothing can be asked again or edited. */
function setRunning(isRunning) {
  composer.setRunning(isRunning);
  for (const button of thread.querySelectorAll("[data-again], [data-edit]")) button.disabled = isRunning;
}

function focusBox() {
  if (matchMedia("(width >= 60rem)").matches) composer.box.focus({ preventScroll: true });
}

function stop() {
  if (!live) return;
  composer.setStopping();
  live.run.say("Stopping");
  announce("Stopping");
  if (!socket.stop(live.run.runId)) post(`/api/runs/${live.run.runId}/stop`).catch(() => undefined);
}

function take(frame) {
  if (frame.run_id !== live?.run.runId) return;
  if (frame.seq === 0) { takeBack(frame.data); return; }
  if (frame.type === "run_started") started(frame.data);
  if (live.run.take(frame)) finished(frame);
  else if (frame.type === "tool_call_start") announce(frame.data.label);
  else if (frame.type === "confirmation_required") announce("A tool waits for your confirmation");
}

function started({ conversation_id: id }) {
  live.away = [];
  if (!page.dataset.conversationId) {
    page.dataset.conversationId = id;
    composer.belongTo(id);
    name(composer.isTemporary ? "Temporary conversation" : live.message);
    composer.settleTemporary();
    menu.show();
    refreshSidebar();
  }
  history.replaceState(null, "", `/chat/${id}/`);
  composer.forgetDraft();
  composer.forgetCeiling();
  announce("Writing");
}

async function finished(frame) {
  const { run } = live;
  live = null;
  const cost = frame.data.receipt?.credits ?? 0;
  announce(frame.type === "error" ? frame.data.message : frame.data.stopped ? `Stopped, ${credits(cost)}` : `Done, ${credits(cost)}`);
  setRunning(false);
  const isAnswered = frame.type === "message_complete" && !frame.data.stopped;
  const next = composer.takeNext();
  if (next && !isAnswered) {
    composer.giveBack(next);
    refuse({ message: "Your next question was held back, because this answer did not finish. It is in the box again." });
  } else if (next) {
    ask(next);
  }
  await run.settle();
  refreshSidebar();
}

/** The question was not taken: nothing was stored or charged, so it goes back into the box. */
function takeBack(error) {
  const { run, message, away, isAgain } = live;
  live = null;
  run.article.remove();
  thread.append(...away);
  setRunning(false);
  if (!isAgain) composer.giveBack(message);
  refuse(error);
  composer.box.focus();
}

let failures = 0;
let isOffline = false;

async function onLine(isOnline, neverOpened) {
  if (isOnline) {
    failures = 0;
    if (isOffline) refuse(null);
    isOffline = false;
    return;
  }
  failures += 1;
  if (failures < 2 && !neverOpened) return;
  if (await isSignedIn() === false) {
    refuse({ code: "unauthenticated", message: "You were signed out. Your draft is kept." });
  } else if (failures > 1 && !isOffline) {
    isOffline = true;
    refuse({ message: live
      ? "No connection. The answer goes on without you and will be here."
      : "No connection. What you write is kept, and can be sent when it is back." });
  }
}

function name(message) {
  const title = message.length > 80 ? `${message.slice(0, 79)}…` : message;
  document.title = `${title} · KlerAI`;
  document.querySelector(".topbar h1").textContent = title;
}

async function refreshSidebar() {
  const fresh = await fragment(`/sidebar/?current=${page.dataset.conversationId}`);
  for (const id of ["sidebar-conversations", "sidebar-balance"]) {
    const part = fresh?.getElementById(id);
    if (part) document.getElementById(id).replaceWith(document.adoptNode(part));
  }
  composer.quote(Number(document.getElementById("sidebar-balance").dataset.left));
}

function parentOf(article) { return article.dataset.parent || null; }

function askAgain(article) {
  if (!live) ask(article.querySelector(".question").textContent, { parent: parentOf(article), after: article, isAgain: true });
}

function edit(article) {
  if (live || article.querySelector(".edit-question")) return;
  const question = article.querySelector(".question");
  const form = document.getElementById("edit-template").content.firstElementChild.cloneNode(true);
  const box = form.querySelector("textarea");
  box.value = question.textContent;
  question.hidden = true;
  question.after(form);
  box.focus();
  const close = () => { form.remove(); question.hidden = false; article.querySelector("[data-edit]")?.focus(); };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const message = box.value.trim();
    if (!message || live) return;
    close();
    ask(message, { parent: parentOf(article), after: article });
  });
  form.querySelector("[data-cancel]").addEventListener("click", close);
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { event.stopPropagation(); close(); }
  });
}

async function copyAnswer(button) {
  const answer = button.closest(".run").querySelector(".answer > .prose").cloneNode(true);
  for (const extra of answer.querySelectorAll("figcaption, .cite-card")) extra.remove();
  for (const cite of answer.querySelectorAll(".cite")) cite.replaceWith(` [${cite.textContent.trim()}]`);
  const holder = document.createElement("div");
  holder.className = "copying";
  holder.append(answer);
  document.body.append(holder);
  const text = answer.innerText.trim();
  holder.remove();
  if (await copy(text, button)) announce("Copied");
}

thread.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  const article = button.closest(".run");
  if ("again" in button.dataset) askAgain(article);
  else if ("edit" in button.dataset) edit(article);
  else if ("copy" in button.dataset) copyAnswer(button);
  else if ("starter" in button.dataset) ask(button.dataset.starter);
});

const passage = new PassagePanel({ thread });
listenToKeys({ thread, composer, passage, stop: () => { if (live) stop(); }, edit, askAgain, copyAnswer });
dressCode(thread);
composer.belongTo(page.dataset.conversationId);
const running = thread.querySelector('.run[data-state="running"], .run[data-state="queued"]');
if (running) {
  watch(running, { message: "", away: [], isAgain: true });
  socket.follow(running.dataset.runId);
}
const wanted = location.hash && document.getElementById(location.hash.slice(1));
if (wanted) wanted.scrollIntoView();
else if (runs().length) runs().at(-1).scrollIntoView({ block: "start" });
focusBox();
document.addEventListener("visibilitychange", () => { if (!document.hidden) refreshSidebar(); });
