/** When a page looks again: soon after an event, and ever more seldom while events go on. */

/** How long events are gathered before a page looks again, in milliseconds. */
const settle = 300;
/** The shortest and the longest time between two looks while events go on. */
const [shortest, longest] = [1000, 5000];

/** How time passes: that of the browser, unless a test has its own. */
export interface Timers {
  start(run: () => void, after: number): unknown;
  stop(timer: unknown): void;
}

const browser: Timers = { start: (run, after) => setTimeout(run, after), stop: (timer) => clearTimeout(timer as number) };

/**
 * Combines the refreshes that events ask for. The first event causes a refresh at once. Events
 * that arrive during the refresh, or during the pause after it, cause one more. The pause doubles
 * while events keep arriving. After a pause without events it is short again.
 */
export class Refresh {
  readonly #look: () => Promise<void>;
  readonly #timers: Timers;
  #timer: unknown;
  #state: "idle" | "settling" | "looking" | "pausing" | "stopped" = "idle";
  #again = false;
  #pause = shortest;

  constructor(look: () => Promise<void>, timers: Timers = browser) {
    this.#look = look;
    this.#timers = timers;
  }

  /** Asks for a look. */
  ask(): void {
    if (this.#state !== "idle") this.#again = true;
    else this.#wait("settling", settle, () => void this.#run());
  }

  /** Ends it: no look follows. */
  stop(): void {
    this.#state = "stopped";
    this.#timers.stop(this.#timer);
  }

  #wait(state: "settling" | "pausing", after: number, then: () => void): void {
    this.#state = state;
    this.#timer = this.#timers.start(then, after);
  }

  async #run(): Promise<void> {
    this.#state = "looking";
    this.#again = false;
    await this.#look().catch(() => {}); // what went wrong is for the page to say
    if (this.#stopped()) return;
    this.#wait("pausing", this.#pause, () => {
      this.#pause = this.#again ? Math.min(this.#pause * 2, longest) : shortest;
      if (this.#again) void this.#run();
      else this.#state = "idle";
    });
  }

  #stopped(): boolean {
    return this.#state === "stopped";
  }
}
