/**
 * Requests to the host's REST API, typed by its OpenAPI document. The cookie of the
 * browser's session names the caller; no token is ever kept here.
 */
import type { components, operations } from "./schema.d.ts";
import { parse, stringify, type Json } from "../json.ts";

export type Schemas = components["schemas"];
export type Problem = Schemas["Problem"];
type Operations = operations;
type Name = keyof Operations;

type Query<N extends Name> = Operations[N]["parameters"] extends { query?: infer Q } ? NonNullable<Q> : never;
type Path<N extends Name> = Operations[N]["parameters"] extends { path: infer P } ? P : Record<string, never>;
type Body<N extends Name> = Operations[N] extends { requestBody?: infer R }
  ? NonNullable<R> extends { content: { "application/json": infer B } }
    ? B
    : never
  : never;
type Success<R> = R extends { 200: { content: infer C } } ? C : R extends { 201: { content: infer C } } ? C : R extends { 202: { content: infer C } } ? C : never;
/** What an operation of the API answers. */
export type Answer<N extends Name> = Success<Operations[N]["responses"]> extends { "application/json": infer A } ? A : undefined;

/** A request of the host's that was refused, with the problem that says why. */
export class Refused extends Error {
  readonly problem: Problem;
  readonly retryAfter: number; // seconds; 0 where the host did not say
  constructor(problem: Problem, retryAfter = 0) {
    super(problem.detail);
    this.problem = problem;
    this.retryAfter = retryAfter;
  }
  get code(): string {
    return this.problem.code;
  }
}

/** The host could not be reached, or what answered is not the host. */
export class Unreachable extends Error {}

/** What a request is made of. */
export interface Request<N extends Name> {
  path?: Path<N>;
  query?: Query<N>;
  body?: Body<N>;
  /** The ETag that the thing has to have still. */
  match?: string | undefined;
  key?: string | undefined; // Idempotency-Key
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
}

/** An answer with what its headers say. */
export interface Full<N extends Name> {
  value: Answer<N>;
  status: number;
  etag: string | undefined;
  headers: Headers;
}

import { segment } from "./segment.ts";
import { routes } from "./routes.ts";

/** Returns the address of an operation of the API. */
export function address<N extends Name>(name: N, request: Request<N> = {}): string {
  const [, pattern] = routes[name];
  const path = (request.path ?? {}) as Record<string, string | number>;
  const where = pattern.replace(/\{([^}]+)\}/g, (_, member: string) => segment(String(path[member] ?? "")));
  const query = new URLSearchParams();
  for (const [member, value] of Object.entries((request.query ?? {}) as Record<string, unknown>)) {
    if (value !== undefined && value !== "" && value !== false) query.set(member, String(value));
  }
  const text = query.toString();
  return text === "" ? where : `${where}?${text}`;
}

/** Makes a request and returns the whole answer. Throws Refused or Unreachable. */
export async function requestFull<N extends Name>(name: N, request: Request<N> = {}): Promise<Full<N>> {
  const headers: Record<string, string> = { Accept: "application/json", ...request.headers };
  const init: RequestInit = { method: routes[name][0], headers, credentials: "same-origin", redirect: "error", cache: "no-store" };
  if (request.signal) init.signal = request.signal;
  if (request.match !== undefined) headers["If-Match"] = request.match;
  if (request.key !== undefined) headers["Idempotency-Key"] = request.key;
  if (request.body !== undefined) {
    headers["Content-Type"] = "application/json";
    init.body = stringify(request.body as Json);
  }
  const response = await send(address(name, request), init);
  const text = await response.text();
  return {
    value: (text === "" ? undefined : parse(text)) as Answer<N>,
    status: response.status,
    etag: response.headers.get("ETag") ?? undefined,
    headers: response.headers,
  };
}

/** Makes a request and returns what the host answered. Throws Refused or Unreachable. */
export async function request<N extends Name>(name: N, r: Request<N> = {}): Promise<Answer<N>> {
  return (await requestFull(name, r)).value;
}

/** What is told of each refusal, such as that the sign-in has ended. */
export const watchers: ((refused: Refused) => void)[] = [];

/** Sends a request as it stands. Throws Refused or Unreachable where the answer is no success. */
export async function send(url: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url, init);
  } catch (err) {
    if (err instanceof DOMException && err.name === "AbortError") throw err;
    throw new Unreachable("The host does not answer. Is `mortise serve` still running?");
  }
  if (response.ok) return response;
  const refused = await refusal(response);
  for (const watcher of watchers) watcher(refused);
  throw refused;
}

async function refusal(response: Response): Promise<Refused> {
  const after = Number(response.headers.get("Retry-After") ?? 0);
  if (response.headers.get("Content-Type")?.startsWith("application/problem+json") === true) {
    return new Refused(parse(await response.text()) as unknown as Problem, after);
  }
  const detail = `The host answered with status ${response.status} and no reason.`;
  return new Refused({ type: "about:blank", title: response.statusText, status: response.status, detail, code: "internal" }, after);
}

/** Follows the pages of a list, and returns all rows up to a bound. */
export async function rows<T>(page: (token: string) => Promise<{ rows: T[]; next: string }>, most: number): Promise<T[]> {
  const all: T[] = [];
  let token = "";
  do {
    const { rows: some, next } = await page(token);
    all.push(...some);
    token = next;
  } while (token !== "" && all.length < most);
  return all.slice(0, most);
}
