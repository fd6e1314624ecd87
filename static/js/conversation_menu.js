/* Renaming, pinning and deleting the conversation that is open. */
import { change } from "./net.js";

/** `onChange()` is called when something else than the page itself has to follow; `refuse(error)` tells of a failure. */
export function openMenu({ page, onChange, refuse }) {
  const menu = document.getElementById("conversation-menu");
  const more = document.getElementById("more");
  const heading = document.querySelector(".topbar h1");
  const address = () => `/api/conversations/${page.dataset.conversationId}`;

  async function save(body) {
    const error = await change("PATCH", address(), body);
    refuse(error);
    if (!error) onChange();
    return !error;
  }

  function askIn(dialog, prepare) {
    prepare(dialog);
    dialog.returnValue = "";
    dialog.showModal();
    return new Promise((resolve) => {
      dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
    });
  }

  const acts = {
    async rename() {
      const box = document.getElementById("new-title");
      const isWanted = await askIn(document.getElementById("rename"), () => { box.value = heading.textContent; });
      const title = box.value.trim();
      if (isWanted && title && await save({ title })) {
        heading.textContent = title;
        document.title = `${title} · KlerAI`;
      }
    },
    async pin(button) {
      const pinned = button.dataset.pinned !== "true";
      if (!await save({ pinned })) return;
      button.dataset.pinned = String(pinned);
      button.querySelector("span").textContent = pinned ? "Unpin" : "Pin";
    },
    async delete() {
      const isWanted = await askIn(document.getElementById("delete"), (dialog) => {
        dialog.querySelector("[data-title]").textContent = heading.textContent;
      });
      if (!isWanted) return;
      const error = await change("DELETE", address());
      if (error) refuse(error);
      else location.assign("/");
    },
  };

  menu.addEventListener("click", (event) => {
    const button = event.target.closest("[data-act]");
    if (!button) return;
    more.hidePopover();
    acts[button.dataset.act](button);
  });
  function show() {
    more.querySelector("[data-memory]").href = `/chat/${page.dataset.conversationId}/memory/`;
    for (const link of more.querySelectorAll("[data-export]")) link.href = `/chat/${page.dataset.conversationId}/export.${link.dataset.export}`;
    menu.hidden = false;
  }

  return { show };
}
