/**
 * The idempotency keys of a form. What is filled in is one intent: however often it is sent until
 * its end is known, the host does it once.
 */
import { bodyOf, type Run } from "./execute.ts";
import { stringify } from "./json.ts";

/** How a call can stand after which nothing more will come of it. */
const ended = new Set(["succeeded", "failed"]);
const most = 100; // inputs of one form whose ends are not known

export class Attempt {
  /** Maps the input of a call to its idempotency key, until the call succeeds or fails. */
  readonly #keys = new Map<string, string>();
  readonly #make: () => string;

  constructor(make: () => string = () => crypto.randomUUID()) {
    this.#make = make;
  }

  /**
   * Returns a call as it is sent, with the key of the form as it is filled in: the same one until
   * the end of the call was seen. A key that the person chose stays, and a dry run needs none.
   */
  keyed(run: Run): Run {
    if (run.key !== "" || run.dry) return run;
    const filled = stringify([run.plugin, run.operation, bodyOf(run)]);
    const key = this.#keys.get(filled) ?? this.#make();
    this.#keys.delete(filled);
    this.#keys.set(filled, key); // the newest last
    for (const oldest of this.#keys.keys()) if (this.#keys.size > most) this.#keys.delete(oldest);
    return { ...run, key };
  }

  /** Takes note of how a call that was sent stands. After its end the same input is another intent. */
  saw(sent: Run, status: string): void {
    if (!ended.has(status)) return;
    for (const [filled, key] of this.#keys) if (key === sent.key) this.#keys.delete(filled);
  }
}
