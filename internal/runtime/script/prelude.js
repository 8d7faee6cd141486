// What a plugin finds when it starts. It runs before any code of the plugin, keeps
// what it needs of the language to itself, and returns a function that takes the
// plugin's exports and calls its register.
//
// All that leaves the engine goes through ask(what, text, function). The numbers
// are those of request in engine.go.
(function (ask) {
  "use strict";
  const ON = 0, ADD = 1, OFF = 2, LOG = 3, GET = 4, SEARCH = 5, SESSION = 6;
  const { freeze, defineProperty, keys } = Object;
  const { isFinite } = Number;
  const { parse, stringify } = JSON;
  const { isArray } = Array;
  const text = String, Failure = Error, Wrong = TypeError;
  const slice = Function.prototype.call.bind(String.prototype.slice);

  for (const name of ["SharedArrayBuffer", "Atomics"]) delete globalThis[name];

  function shown(value) {
    if (typeof value === "string") return value;
    if (value instanceof Failure) return value.stack ? `${text(value)}\n${value.stack}` : text(value);
    if (typeof value !== "object" || value === null) return text(value);
    try {
      return stringify(value);
    } catch {
      return "[object]";
    }
  }
  function log(level, message, fields) {
    ask(LOG, stringify({ level, message: slice(shown(message), 0, 4096), fields: fields === undefined ? undefined : slice(shown(fields), 0, 4096) }));
  }
  function joined(level, values) {
    let line = "";
    for (let i = 0; i < values.length; i++) line += (i ? " " : "") + shown(values[i]);
    log(level, line);
  }
  function asFunction(value, what) {
    if (typeof value !== "function") throw new Wrong(`${what} is a function, not ${value === null ? "null" : typeof value}`);
    return value;
  }
  function names(value, what) {
    if (value === undefined) return undefined;
    const list = isArray(value) ? value : [value];
    for (let i = 0; i < list.length; i++) if (typeof list[i] !== "string") throw new Wrong(`${what} names plugins`);
    return list;
  }

  function finite(value, what) {
    if (value !== undefined && !isFinite(value)) throw new Wrong(`${what} is a finite number`); // JSON would make null of the others
  }

  const logger = {}, console = {};
  for (const level of ["debug", "info", "warn", "error"]) {
    logger[level] = (message, fields) => log(level, message, fields);
    console[level] = (...values) => joined(level, values);
  }
  console.log = console.info;
  console.trace = console.debug;

  const bus = {
    on(event, handler, options) {
      if (typeof event !== "string") throw new Wrong("the name of an event is a string");
      asFunction(handler, "a handler");
      if (options !== undefined && (typeof options !== "object" || options === null || isArray(options))) {
        throw new Wrong("the options of bus.on are an object, as in {priority: 50}");
      }
      const { priority, failureMode, before, after, deadlineMs, ...others } = options ?? {};
      finite(priority, "priority");
      finite(deadlineMs, "deadlineMs");
      const number = parse(ask(ON, stringify({
        event, priority, failureMode, before: names(before, "before"), after: names(after, "after"), deadlineMs, unknown: keys(others),
      }), handler));
      return () => { ask(OFF, text(number)); };
    },
  };
  const tools = {
    add(tool) {
      if (typeof tool !== "object" || tool === null) throw new Wrong("a tool is an object with name, schema and handler");
      const { name, description, schema, handler } = tool;
      ask(ADD, stringify({ name, description, schema }), asFunction(handler, "the handler of a tool"));
    },
  };
  const memory = {
    async get(key) {
      const answer = ask(GET, stringify({ key: text(key) }));
      return answer === "" ? undefined : parse(answer);
    },
    async search(query, options) {
      const limit = typeof options === "number" ? options : options?.limit;
      return parse(ask(SEARCH, stringify({ query: text(query), limit })));
    },
  };
  const session = {};
  for (const name of ["id", "type", "channel", "turn"]) {
    defineProperty(session, name, { enumerable: true, get: () => parse(ask(SESSION, ""))[name] });
  }
  const ctx = freeze({ bus: freeze(bus), tools: freeze(tools), memory: freeze(memory), session: freeze(session), logger: freeze(logger) });
  defineProperty(globalThis, "console", { value: freeze(console) });

  return (exports) => {
    const main = exports?.default;
    const register = exports?.register ?? (typeof main === "function" ? main : main?.register);
    if (typeof register !== "function") throw new Wrong("the plugin exports no function named register: write `export function register(ctx) { ... }`");
    return register(ctx);
  };
})
