/* Requests to our own server, with the form token that Django wants. */

export function csrfToken() {
  return document.querySelector('meta[name="csrf-token"]')?.content ?? "";
}

export function post(url, fields = {}) {
  return fetch(url, { method: "POST", headers: { "X-CSRFToken": csrfToken(), "X-Requested-With": "fetch" }, body: new URLSearchParams(fields) });
}

/** Changes something through the API; the error in words, or null when it was done. */
export async function change(method, url, body) {
  try {
    const answer = await fetch(url, {
      method,
      headers: { "X-CSRFToken": csrfToken(), "Content-Type": "application/json" },
      body: body && JSON.stringify(body),
    });
    return answer.ok ? null : (await answer.json()).error;
  } catch {
    return { message: "No connection. Nothing was changed." };
  }
}

/** A piece of one of our own pages, as a document; null when it cannot be had now. */
export async function fragment(url) {
  try {
    const answer = await fetch(url, { headers: { "X-Requested-With": "fetch" }, redirect: "error" });
    return answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
  } catch {
    return null;
  }
}

/** Whether the server still knows who we are; null when it cannot be asked. */
export async function isSignedIn() {
  try {
    const answer = await fetch("/sidebar/", { redirect: "manual" });
    return answer.ok ? true : answer.type === "opaqueredirect" || answer.status === 401 || answer.status === 403 ? false : null;
  } catch {
    return null;
  }
}
