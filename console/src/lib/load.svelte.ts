/** Something of the host's that a page shows: it is asked for, and asked for again as events say so. */
import { Refused } from "./api/client.ts";
import { listen, type Event } from "./live.svelte.ts";
import { Refresh } from "./refresh.ts";

export class Loaded<T> {
  /** What the host answered last; it stays while it is asked for again. */
  value = $state.raw<T | undefined>(undefined);
  /** Why the last request failed. */
  error = $state.raw<unknown>(undefined);
  /** A request is under way. */
  busy = $state(false);

  readonly #ask: (signal: AbortSignal) => Promise<T>;
  #under = new AbortController();

  constructor(ask: (signal: AbortSignal) => Promise<T>) {
    this.#ask = ask;
  }

  /** Asks for it. An earlier request that is still under way counts no more. */
  async load(): Promise<void> {
    this.#under.abort();
    const under = new AbortController();
    this.#under = under;
    this.busy = true;
    try {
      const value = await this.#ask(under.signal);
      if (under.signal.aborted) return;
      this.value = value;
      this.error = undefined;
    } catch (err) {
      if (!under.signal.aborted) this.error = err;
    } finally {
      if (!under.signal.aborted) this.busy = false;
    }
  }

  /** Reports whether the last request was refused for want of a right: no event changes that, and each refusal is recorded. */
  get barred(): boolean {
    return this.error instanceof Refused && (this.error.code === "policy_denied" || this.error.code === "scope_denied");
  }

  stop(): void {
    this.#under.abort();
  }
}

/**
 * Loads something for as long as a component is there: at once, again whenever what ask
 * reads changes, and again after events that concern it.
 */
export function loaded<T>(ask: (signal: AbortSignal) => Promise<T>, concerns: (event: Event) => boolean = () => false): Loaded<T> {
  const thing = new Loaded(ask);
  $effect(() => {
    void thing.load();
    return () => thing.stop();
  });
  $effect(() => {
    const refresh = new Refresh(() => thing.load());
    const end = listen((events) => {
      if ((events.length === 0 || events.some(concerns)) && !thing.barred) refresh.ask();
    });
    return () => {
      refresh.stop();
      end();
    };
  });
  return thing;
}

/** Concerns the events of some nouns. */
export function of(...nouns: Event["noun"][]): (event: Event) => boolean {
  return (event) => nouns.includes(event.noun);
}
