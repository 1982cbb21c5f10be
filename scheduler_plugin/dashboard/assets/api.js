// The dashboard's answers. Only this tab keeps the token, and sends it in a header: never a cookie.

import { createParser } from "./vendor/eventsource-parser.js";

const KEY = "moorage.token";
const SILENT_MS = 25000; // The server sends something every 15 s.
const FIRST_MS = 12000; // A proxy that holds streams back sends nothing at all.
const POLL_MS = 3000;
const STREAM_AGAIN_MS = 60000;

export const token = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (value) => sessionStorage.setItem(KEY, value),
  forget: () => sessionStorage.removeItem(KEY),
};

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function open(path, signal) {
  let response;
  try {
    response = await fetch(`api/${path}`, {
      headers: { Authorization: `Bearer ${token.get()}` },
      cache: "no-store",
      credentials: "omit",
      signal,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The dashboard does not answer.");
  }
  if (!response.ok) throw new Refused(response.status, await response.text());
  return response;
}

export const get = async (path, signal) => (await open(path, signal)).json();

export const query = (fields) => new URLSearchParams(fields).toString();

const pause = (milliseconds, signal) =>
  new Promise((done) => {
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener("abort", () => (clearTimeout(timer), done()), { once: true });
  });

/* Follows the state until the signal: by the stream, or by polling if a proxy holds the stream back.
   `received` is called with each state, `how` with "live", "polling" or "lost" and the reason. */
export async function follow(path, signal, received, how) {
  let wait = 1000;
  while (!signal.aborted) {
    try {
      await stream(path, signal, (state) => {
        wait = 1000;
        how("live", "");
        received(state);
      });
    } catch (error) {
      if (signal.aborted) return;
      if (error.status === 401) throw error;
      if (error.silent || error.status === 503) {
        if (await poll(path, signal, received, how)) continue;
      }
      how("lost", error.message);
    }
    await pause(wait, signal);
    wait = Math.min(wait * 2, 15000);
  }
}

async function stream(path, signal, received) {
  const aborter = new AbortController();
  const silent = Object.assign(new Error("The stream is silent."), { silent: true });
  let timer;
  const alive = (milliseconds) => {
    clearTimeout(timer);
    timer = setTimeout(() => aborter.abort(silent), milliseconds);
  };
  signal.addEventListener("abort", () => aborter.abort(), { once: true });
  alive(FIRST_MS);
  try {
    const response = await open(`stream?${path}`, aborter.signal);
    let ended = null;
    const parser = createParser({
      onEvent({ event, data }) {
        if (event === "state") received(JSON.parse(data));
        if (event === "ended") ended = new Refused(401, JSON.parse(data));
        if (event === "failed") ended = new Refused(0, JSON.parse(data));
      },
    });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new Refused(0, "The connection was closed.");
      parser.feed(value);
      if (ended) throw ended;
      alive(SILENT_MS);
    }
  } catch (error) {
    throw aborter.signal.reason === silent ? silent : error;
  } finally {
    clearTimeout(timer);
    aborter.abort();
  }
}

// Polls, and returns true when it is time to try the stream again; false if polling fails, too.
async function poll(path, signal, received, how) {
  const until = Date.now() + STREAM_AGAIN_MS;
  try {
    while (!signal.aborted && Date.now() < until) {
      received(await get(`state?${path}`, signal));
      how("polling", "A proxy holds the stream back: the page asks every 3 s.");
      await pause(POLL_MS, signal);
    }
    return true;
  } catch (error) {
    if (error.status === 401) throw error;
    return signal.aborted;
  }
}
