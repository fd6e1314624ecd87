/* Sends files one by one, two at a time, and shows how far each of them is. */
import { csrfToken } from "./net.js";

const AT_A_TIME = 2;
const UNITS = [[1e6, " MB"], [1e3, " kB"]];

export function sizeInWords(bytes) {
  const [unit, name] = UNITS.find(([least]) => bytes >= least * 0.9995) ?? [1, " bytes"];
  const size = bytes / unit;
  return `${unit === 1e6 && size < 10 ? size.toFixed(1) : Math.round(size).toLocaleString("en")}${name}`;
}

/** `onAccepted()` after each file the server took; `onEnd(taken, refused)` when nothing is left to send. */
export function uploader({ url, limit, onAccepted, onEnd }) {
  const section = document.getElementById("uploads");
  const refusals = document.getElementById("refused");
  const waiting = [];
  let running = 0, taken = 0, refused = 0;

  function row(file) {
    const made = document.getElementById("upload-row").content.cloneNode(true).firstElementChild;
    made.querySelector("th").textContent = file.name;
    made.querySelector("[data-size]").textContent = sizeInWords(file.size);
    made.querySelector("[data-words]").textContent = "Waiting to be sent";
    made.querySelector("progress").setAttribute("aria-label", `Uploading ${file.name}`);
    made.querySelector("button").setAttribute("aria-label", `Cancel ${file.name}`);
    section.querySelector("tbody").append(made);
    section.hidden = false;
    return made;
  }

  function refuse(name, words) {
    refused += 1;
    const made = document.getElementById("refused-file").content.cloneNode(true).firstElementChild;
    made.querySelector("b").textContent = name;
    made.querySelector("p span").textContent = words;
    const button = made.querySelector("button");
    button.setAttribute("aria-label", `Dismiss ${name}`);
    button.addEventListener("click", () => {
      made.remove();
      refusals.hidden = !refusals.querySelector(".banner");
    });
    refusals.append(made);
    refusals.hidden = false;
  }

  function done(shown) {
    shown.remove();
    section.hidden = !section.querySelector("tbody tr");
    running -= 1;
    next();
    if (!running && !waiting.length) {
      onEnd(taken, refused);
      taken = refused = 0;
    }
  }

  function send({ file, shown }) {
    running += 1;
    const request = new XMLHttpRequest();
    const words = shown.querySelector("[data-words]"), bar = shown.querySelector("progress");
    const body = new FormData();
    body.append("file", file, file.name);
    request.open("POST", url);
    request.setRequestHeader("X-CSRFToken", csrfToken());
    request.upload.addEventListener("progress", ({ loaded, total }) => {
      const share = Math.floor((100 * loaded) / total);
      bar.value = share;
      words.textContent = share < 100 ? `Uploading, ${share} %` : "Uploaded, being stored";
    });
    request.addEventListener("load", () => {
      if (request.status === 202) {
        taken += 1;
        onAccepted();
      } else {
        refuse(file.name, reason(request));
      }
      done(shown);
    });
    request.addEventListener("error", () => {
      refuse(file.name, "did not arrive: the connection was lost. Add it again.");
      done(shown);
    });
    request.addEventListener("abort", () => done(shown));
    shown.querySelector("button").onclick = () => request.abort();
    words.textContent = "Uploading";
    request.send(body);
  }

  function next() {
    while (running < AT_A_TIME && waiting.length) send(waiting.shift());
  }

  return function add(files) {
    for (const file of files) {
      if (file.size > limit) {
        refuse(file.name, `has ${sizeInWords(file.size)}; the limit is ${sizeInWords(limit)}. Split it, and add the parts you need.`);
        continue;
      }
      const shown = row(file);
      const queued = { file, shown };
      shown.querySelector("button").onclick = () => {
        waiting.splice(waiting.indexOf(queued), 1);
        running += 1;
        done(shown);
      };
      waiting.push(queued);
    }
    next();
    if (!running && refused) {
      onEnd(taken, refused);
      taken = refused = 0;
    }
  };
}

function reason(request) {
  try {
    const { message, fields } = JSON.parse(request.responseText).error;
    return Object.values(fields ?? {}).flat().join(" ") || message;
  } catch {
    return "was not taken by the server. Try again in a moment.";
  }
}
