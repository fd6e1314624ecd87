/* A knowledge base: files dropped anywhere are added, and the lists follow while anything is in progress. */
import { fragment, post } from "./net.js";
import { uploader } from "./uploads.js";

const LOOK_MS = 1_200;
const lists = document.getElementById("documents");
const area = document.querySelector("[data-upload]");
const announcer = document.getElementById("announcer");
let timer = 0;
let turn = 0;
let failedBefore = 0; // when the first of those now in progress came

const count = (selector) => lists.querySelectorAll(selector).length;
const files = (number) => `${number} file${number === 1 ? "" : "s"}`;

/** Takes over what changed, section by section; one with an open menu or the focus stays until that is over. */
async function look() {
  clearTimeout(timer);
  const mine = (turn += 1);
  const page = await fragment(location.href);
  if (mine !== turn) return; // another look began meanwhile and sees more
  if (page) show(page);
  if (count("#waiting [data-document]") || !page) timer = setTimeout(look, LOOK_MS);
}

function show(page) {
  const before = count("#waiting [data-document]");
  if (!before) failedBefore = count("#failed [data-document]");
  const fresh = [...page.getElementById("documents").children];
  for (const live of page.querySelectorAll("[data-live]")) {
    const old = document.getElementById(live.id);
    if (old && old.innerHTML !== live.innerHTML) old.innerHTML = live.innerHTML;
  }
  for (const section of [...lists.children]) {
    if (!fresh.some(({ id }) => id === section.id)) section.remove();
  }
  for (const section of fresh) {
    const old = document.getElementById(section.id);
    if (!old || old.parentElement !== lists) place(section, fresh);
    else if (old.innerHTML !== section.innerHTML && !isHeld(old)) old.replaceWith(section);
  }
  if (before && !count("#waiting [data-document]")) announce();
}

function place(section, fresh) {
  const after = fresh.slice(fresh.indexOf(section) + 1).map(({ id }) => document.getElementById(id)).find((one) => one?.parentElement === lists);
  lists.insertBefore(section, after ?? null);
}

function isHeld(section) {
  return section.querySelector(":popover-open") || section.contains(document.activeElement);
}

function announce() {
  const failed = count("#failed [data-document]") - failedBefore;
  announcer.textContent = failed > 0 ? `Done. ${files(failed)} could not be added.` : "Done. All files are ready.";
}

if (area) {
  const add = uploader({
    url: area.dataset.upload,
    limit: Number(area.dataset.limit),
    onAccepted: look,
    onEnd(taken, refused) {
      announcer.textContent = `${files(taken)} added${refused ? `, ${refused} not taken` : ""}.`;
      look();
    },
  });
  const input = area.querySelector("input[type=file]");
  document.addEventListener("click", ({ target }) => { if (target.closest("[data-choose]")) input.click(); });
  input.addEventListener("change", () => {
    add([...input.files]);
    input.value = "";
  });

  let depth = 0;
  const holdsFiles = (event) => event.dataTransfer?.types.includes("Files");
  document.addEventListener("dragenter", (event) => { if (holdsFiles(event)) { depth += 1; area.dataset.dropping = ""; } });
  document.addEventListener("dragleave", (event) => { if (holdsFiles(event) && --depth <= 0) { depth = 0; delete area.dataset.dropping; } });
  document.addEventListener("dragover", (event) => { if (holdsFiles(event)) event.preventDefault(); });
  document.addEventListener("drop", async (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    depth = 0;
    delete area.dataset.dropping;
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
    add(entries.length ? (await Promise.all(entries.map(filesIn))).flat() : [...event.dataTransfer.files]);
  });
}

/** The files of what was dropped, folders and all; hidden ones stay where they are. One of a folder is named by its path. */
async function filesIn(entry) {
  if (entry.name.startsWith(".")) return [];
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    const path = entry.fullPath.split("/").filter(Boolean).join(" › ");
    return [path === file.name ? file : new File([file], path, { type: file.type })];
  }
  const reader = entry.createReader();
  const found = [];
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return (await Promise.all(found.map(filesIn))).flat();
    found.push(...some);
  }
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-delete]");
  const dialog = document.getElementById("delete");
  if (event.target.closest("[data-close]")) dialog.close();
  if (!link || !dialog) return;
  event.preventDefault();
  link.closest("[popover]")?.hidePopover();
  dialog.querySelector("[data-title]").textContent = link.dataset.delete;
  dialog.querySelector("form").action = link.href;
  dialog.showModal();
});

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!("inPlace" in form.dataset)) return;
  event.preventDefault();
  form.querySelector("button").disabled = true;
  document.activeElement?.blur();
  await post(form.action);
  look();
});

document.addEventListener("visibilitychange", () => { if (!document.hidden && timer) look(); });
failedBefore = count("#failed [data-document]");
if (count("#waiting [data-document]")) timer = setTimeout(look, LOOK_MS);
