/* One connection for all the runs of a page. It comes back by itself and goes on where each run stood. */

const FIRST_WAIT_MS = 400;
const LONGEST_WAIT_MS = 15_000;

export class RunSocket {
  #socket = null;
  #wait = FIRST_WAIT_MS;
  #timer = 0;
  #runs = new Map(); // run id → { ask, lastSeq }
  #onFrame;
  #onLine;

  /** `onFrame(frame)` gets every event once and in order; `onLine(isOnline, neverOpened)` tells of the connection. */
  constructor({ onFrame, onLine }) {
    this.#onFrame = onFrame;
    this.#onLine = onLine;
    addEventListener("online", () => this.#open());
    addEventListener("pagehide", () => this.#socket?.close());
    addEventListener("pageshow", (event) => { if (event.persisted) this.#open(); });
    this.#open();
  }

  ask(body) {
    this.#runs.set(body.run_id, { ask: body, lastSeq: 0 });
    this.#open();
    this.#send({ type: "ask", ...body });
  }

  follow(runId) {
    this.#runs.set(runId, { ask: null, lastSeq: 0 });
    this.#open();
    this.#send({ type: "resume", run_id: runId, last_seq: 0 });
  }

  /** False when there is no connection to say it over. */
  stop(runId) {
    return this.#send({ type: "stop", run_id: runId });
  }

  #send(message) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify(message));
    return true;
  }

  #open() {
    clearTimeout(this.#timer);
    if (this.#socket && this.#socket.readyState <= WebSocket.OPEN) return;
    const address = new URL("/ws/chat/?render=1", location.href);
    address.protocol = address.protocol.replace("http", "ws");
    const socket = new WebSocket(address);
    let opened = false;
    this.#socket = socket;
    socket.addEventListener("open", () => {
      opened = true;
      this.#wait = FIRST_WAIT_MS;
      this.#onLine(true, false);
      for (const [id, { ask, lastSeq }] of this.#runs) {
        this.#send(ask && !lastSeq ? { type: "ask", ...ask } : { type: "resume", run_id: id, last_seq: lastSeq });
      }
    });
    socket.addEventListener("message", ({ data }) => { if (socket === this.#socket) this.#take(JSON.parse(data)); });
    socket.addEventListener("close", () => {
      if (socket !== this.#socket) return;
      this.#socket = null;
      this.#onLine(false, !opened);
      this.#timer = setTimeout(() => this.#open(), this.#wait * (0.75 + Math.random() / 2));
      this.#wait = Math.min(this.#wait * 2, LONGEST_WAIT_MS);
    });
  }

  #take(frame) {
    const run = this.#runs.get(frame.run_id);
    if (!run) return;
    if (frame.seq === 0) {
      this.#runs.delete(frame.run_id);
    } else {
      if (frame.seq <= run.lastSeq) return;
      run.lastSeq = frame.seq;
      if (frame.type === "message_complete" || frame.type === "error") this.#runs.delete(frame.run_id);
    }
    this.#onFrame(frame);
  }
}
