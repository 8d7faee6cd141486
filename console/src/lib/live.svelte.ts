/** What happens on the host, as it happens: one stream of events for the whole console. */
import { Refused, send, type Schemas } from "./api/client.ts";
import { parse } from "./json.ts";
import { read } from "./sse.ts";

/** Something that happened to a noun. */
export type Event = Schemas["Event"];
export type Noun = Event["noun"];

/** How the stream stands, and the id of its last event. */
export const live = $state<{ state: "connecting" | "live" | "paused" | "lost"; why: string; last: string }>({ state: "connecting", why: "", last: "" });

type Listener = (events: Event[]) => void;
const listeners = new Set<Listener>();

/** Hears of events, at most ten times a second, several at a time, and not while the window is hidden. An empty list means that some were missed. */
export function listen(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const every = 100; // milliseconds between two deliveries to the pages
const most = 2000; // events that are kept for one delivery; beyond it pages look again
const silence = 40_000; // milliseconds without a sign of life, which the host gives each 15 s

let ended = new AbortController();
let waiting: Event[] = [];
let missed = false; // there were more than are kept, or the host has told so
let timer: ReturnType<typeof setTimeout> | undefined;

function deliver(): void {
  timer = undefined;
  if (document.hidden || (waiting.length === 0 && !missed)) return; // a window that comes back is told
  const events = missed ? [] : waiting;
  waiting = [];
  missed = false;
  for (const listener of listeners) listener(events);
}

/** Keeps events for the pages until the next delivery; undefined stands for some that were missed. */
function keep(event: Event | undefined): void {
  missed ||= event === undefined || waiting.length >= most;
  if (missed) waiting = [];
  else if (event !== undefined) waiting.push(event);
  timer ??= setTimeout(deliver, every);
}

document.addEventListener("visibilitychange", deliver);

/** Begins to listen, or goes on after a pause: the host tells what happened meanwhile. */
export function connect(): void {
  ended.abort();
  ended = new AbortController();
  void follow(ended.signal);
}

/** Stops listening until connect is called. Pages keep what they show. */
export function pause(): void {
  ended.abort();
  live.state = "paused";
}

async function follow(stopped: AbortSignal): Promise<void> {
  let retry = 2000;
  while (!stopped.aborted) {
    live.state = "connecting";
    try {
      await once(stopped, (ms) => (retry = ms));
      live.why = "The stream ended.";
    } catch (err) {
      if (stopped.aborted) return;
      live.why = err instanceof Error ? err.message : String(err);
      if (err instanceof Refused && err.retryAfter > 0) retry = err.retryAfter * 1000;
    }
    if (stopped.aborted) return;
    live.state = "lost";
    await new Promise((done) => setTimeout(done, retry * (0.8 + Math.random() * 0.4)));
  }
}

async function once(stopped: AbortSignal, retry: (ms: number) => void): Promise<void> {
  const quiet = new AbortController();
  let alive = setTimeout(() => quiet.abort(), silence);
  try {
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (live.last !== "") headers["Last-Event-ID"] = live.last;
    const response = await send("/api/v1/events", { headers, credentials: "same-origin", cache: "no-store", signal: AbortSignal.any([stopped, quiet.signal]) });
    const watched = new Response(
      response.body?.pipeThrough(
        new TransformStream<Uint8Array, Uint8Array>({
          transform(chunk, out) {
            clearTimeout(alive);
            alive = setTimeout(() => quiet.abort(), silence);
            out.enqueue(chunk);
          },
        }),
      ) ?? null,
    );
    live.state = "live";
    live.why = "";
    for await (const message of read(watched, retry)) {
      if (message.id !== "") live.last = message.id;
      if (message.event === "reset") keep(undefined);
      else if (message.data !== "") keep(parse(message.data) as unknown as Event);
    }
  } finally {
    clearTimeout(alive);
  }
}
