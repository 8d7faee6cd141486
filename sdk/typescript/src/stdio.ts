// Standard input and output, as lines of the protocol.

import { closeSync, constants, openSync, writeSync } from "node:fs";
import type { Output } from "./session.ts";

let claimed: number | undefined;

/**
 * Takes standard output away from the plugin's code, for the protocol alone:
 * prints go to standard error from here on. Returns the protocol's descriptor,
 * the same one every time.
 *
 * Where the system allows it, descriptor 1 itself becomes standard error, so
 * that native code and child processes cannot break a frame either.
 */
export function claimStdout(): number {
  if (claimed === undefined) {
    claimed = moveDescriptor();
    // console looks process.stdout up when it is first used.
    Object.defineProperty(process, "stdout", { configurable: true, enumerable: true, get: () => process.stderr });
  }
  return claimed;
}

// Node has no dup(2). Opening /proc/self/fd/N does the same for pipes, files and
// terminals, but not for sockets; close(2) makes 1 the lowest free descriptor.
function moveDescriptor(): number {
  let moved: number | undefined;
  try {
    moved = reopen(1);
    closeSync(reopen(2));
    closeSync(1);
    reopen(2);
    return moved;
  } catch {
    if (moved !== undefined) closeSync(moved);
    return 1;
  }
}

function reopen(fd: number): number {
  const path = `/proc/self/fd/${fd}`;
  // Opening a pipe without a reader fails here at once, and would block without
  // O_NONBLOCK.
  closeSync(openSync(path, constants.O_WRONLY | constants.O_NONBLOCK));
  return openSync(path, constants.O_WRONLY | constants.O_APPEND);
}

/** Writes lines to a descriptor. Lines made in one turn of the event loop share a write. */
export class DescriptorOutput implements Output {
  readonly #fd: number;
  #pending = "";
  #scheduled = false;
  #flushed = 0;

  constructor(fd: number) {
    this.#fd = fd;
  }

  send(line: string): void {
    this.#pending += line;
    if (this.#pending.length > 65536) this.flush();
    else if (!this.#scheduled) {
      this.#scheduled = true;
      queueMicrotask(this.flush);
    }
  }

  sendSoon(line: string): void {
    this.send(line);
    if (performance.now() - this.#flushed > 10) this.flush();
  }

  readonly flush = (): void => {
    this.#scheduled = false;
    this.#flushed = performance.now();
    if (this.#pending === "") return;
    const text = this.#pending;
    this.#pending = "";
    let at = this.#write(text, 0);
    if (at === Buffer.byteLength(text)) return;
    const bytes = Buffer.from(text);
    while (at < bytes.length) at += this.#write(bytes, at);
  };

  // Returns how many bytes the descriptor took, which may be none.
  #write(data: string | Buffer, at: number): number {
    try {
      return typeof data === "string" ? writeSync(this.#fd, data) : writeSync(this.#fd, data, at);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EPIPE") process.exit(0); // the host is gone
      if (code !== "EAGAIN") throw error;
      // The pipe is full and does not block. Let the host read for a moment.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
      return 0;
    }
  }
}

/** Cuts bytes into lines, none longer than {@link limit}. */
export class LineReader {
  limit: number;
  readonly #line: (text: string) => void;
  #parts: Buffer[] = [];
  #length = 0;

  constructor(limit: number, line: (text: string) => void) {
    this.limit = limit;
    this.#line = line;
  }

  /** Takes what was read and hands on the lines it completes. Throws RangeError for a line over the limit. */
  push(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      this.#check(end - start);
      const line = this.#length === 0 ? chunk.toString("utf8", start, end) : this.#take(chunk.subarray(start, end));
      start = end + 1;
      this.#line(line);
    }
    if (start < chunk.length) {
      this.#check(chunk.length - start);
      this.#parts.push(start === 0 ? chunk : chunk.subarray(start));
      this.#length += chunk.length - start;
    }
  }

  /** The end: a last line without its newline is still a line. */
  end(): void {
    if (this.#length > 0) this.#line(this.#take(Buffer.alloc(0)));
  }

  #take(last: Buffer): string {
    const line = Buffer.concat([...this.#parts, last]).toString("utf8");
    this.#parts = [];
    this.#length = 0;
    return line;
  }

  #check(more: number): void {
    if (this.#length + more > this.limit) throw new RangeError(`the host sent a line of more than ${this.limit} bytes`);
  }
}
