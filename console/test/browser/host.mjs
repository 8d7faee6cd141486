// A real host for the tests: the program that make has built, with a data directory of
// its own, on a free port of this machine.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const program = process.env.MORTISE_TEST_BINARY ?? fileURLToPath(new URL("../../../bin/mortise", import.meta.url));
const browsers = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** The browser that is installed here; undefined where there is none. */
export const browser = process.env.MORTISE_TEST_BROWSER ?? browsers.find((path) => existsSync(path));

/** Why the tests cannot run here; undefined where they can. */
export const missing = !existsSync(program)
  ? `there is no ${program}: make build`
  : browser === undefined
    ? "no Chromium is installed (on Debian: apt-get install chromium)"
    : undefined;

/** How the browser is started: without a sandbox as root, and without asking anything of anyone. */
export const launch = {
  executablePath: browser,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
};

const configuration = `sandbox: off # the plugin writes a file outside
policy:
  files: [policies]
  groups: {desk: ["local:owner", bob], guests: [eve]}
approvals: {trust_as: true}
quotas: {default: {day: 5000}, plugins: {mail/send: {day: 50}}}
`;

const policies = `@id("mail_waits") @approval("it leaves the house")
permit (principal, action == Action::"execute", resource == Operation::"mail/send");
@id("desk_approves")
permit (principal in Group::"desk", action == Action::"approve", resource);
@id("form") permit (principal, action == Action::"execute", resource in Plugin::"torture");
@id("desk") permit (principal, action == Action::"execute", resource in Plugin::"desk");
@id("lost") permit (principal, action == Action::"execute", resource == Operation::"mail/lose");
@id("tools") permit (principal, action == Action::"execute", resource in Plugin::"reported.claude-code");
`;

export const mail = `import os
from mortise import Plugin, PluginError

plugin = Plugin("mail", version="1.0.0")

@plugin.operator(effects=["mail_send"])
def send(to: str, text: str = "") -> str:
    """Send a mail."""
    return "sent to " + to

@plugin.operator(effects=["mail_send"])
def lose(to: str) -> str:
    """Send a mail, and end before it says so."""
    os._exit(1)

@plugin.tool
def check(to: str) -> str:
    """Check an address."""
    raise PluginError("there is no mailbox " + to, "NO_SUCH_ADDRESS")

plugin.run()
`;

/** An agent that proposes a plan of two steps, of which the second needs an approval. */
export const desk = {
  "manifest.yaml": `name: desk
version: 1.0.0
owner: test
description: Plan a note, write it, and post it.
runner: {kind: process, entry: desk.py}
operations:
  plan: {kind: agent, allowed_actions: [desk/draft, desk/post], description: Propose to write a note and to post it.}
  draft: {kind: operator, description: Write a note.}
  post: {kind: operator, effects: [board_write], description: Post a note.}
`,
  "desk.py": `from mortise import Plugin

plugin = Plugin("desk", version="1.0.0")

@plugin.agent
def plan(intent: dict, context: dict, policy_snapshot: dict, tool_registry: list, constraints: dict, runtime: dict) -> dict:
    """Propose to write a note and to post it."""
    return {
        "agent_name": "desk", "agent_version": "1.0.0", "kind": "plan_proposal", "confidence": 0.9,
        "rationale": {"short": "The crane report has to reach the shift.", "signals": ["intent_type:Board.Note.Post"]},
        "required_actions": [{"operator": "desk/draft", "payload": {"text": "crane 4 is closed"}}],
        "proposed_plan": {"steps": [
            {"step_id": "draft", "action": "desk/draft", "gate": "none"},
            {"step_id": "post", "action": "desk/post", "gate": "human_apply", "payload": {"note": {"$from": "draft", "pointer": "/note"}}},
        ]},
    }

@plugin.operator
def draft(text: str) -> dict:
    """Write a note."""
    return {"note": text.capitalize() + "."}

@plugin.operator(effects=["board_write"])
def post(note: str) -> dict:
    """Post a note."""
    return {"posted": note}

if __name__ == "__main__":
    plugin.run()
`,
};

export class Host {
  constructor() {
    this.dir = mkdtempSync(join(tmpdir(), "mortise-console-"));
    chmodSync(this.dir, 0o755);
    this.home = join(this.dir, "home");
    mkdirSync(join(this.home, "policies"), { recursive: true });
    writeFileSync(join(this.home, "mortise.yaml"), configuration);
    writeFileSync(join(this.home, "policies", "all.cedar"), policies);
  }

  /** Lets people sign in with a provider, each of them by an invitation. approvals is how long they are waited for, and more. */
  people(provider, approvals, ...principals) {
    writeFileSync(join(this.home, "provider.secret"), provider.client.secret, { mode: 0o600 });
    writeFileSync(join(this.home, "mortise.yaml"), `${configuration.replace("approvals: {trust_as: true}\n", `approvals: {${approvals}}\n`)}server:
  sign_in:
  - {name: company, issuer: "${provider.issuer}", client_id: ${provider.client.id}, client_secret_file: provider.secret}
`);
    for (const principal of principals) this.run("users", "create", principal);
  }

  /** Runs the command line and returns what it prints. */
  run(...args) {
    return execFileSync(program, args, { env: this.env(), encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  }

  /** Runs the command line with a JSON value as its input. */
  say(value, ...args) {
    return execFileSync(program, args, { env: this.env(), encoding: "utf8", input: JSON.stringify(value), stdio: ["pipe", "pipe", "pipe"] });
  }

  env() {
    return { PATH: process.env.PATH, HOME: this.dir, TZ: "UTC", MORTISE_HOME: this.home };
  }

  /** Registers a plugin in Python. */
  plugin(name, source) {
    this.run("plugins", "register", "--dev", join(this.write(name, { [`${name}.py`]: source }), `${name}.py`));
  }

  /** Writes files by their names into a directory of their own, and returns it. */
  write(name, files) {
    const dir = join(this.dir, name);
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(dir, path)), { recursive: true });
      writeFileSync(join(dir, path), text);
    }
    return dir;
  }

  /** Puts another policy in place of the usual one. */
  policy(text) {
    writeFileSync(join(this.home, "policies", "all.cedar"), text);
  }

  /** Fills the host with something of each noun. */
  fill() {
    this.plugin("mail", mail);
    const log = join(this.dir, "auth.log");
    writeFileSync(log, Array.from({ length: 40 }, (_, i) => `Nov 23 21:0${i % 6}:${10 + i} gate sshd[${i}]: Failed password for root from 192.0.2.${i % 4} port 4${i} ssh2`).join("\n") + "\n");
    const session = JSON.parse(this.run("sessions", "create", "--name", "Gate logins", "--json")).id;
    this.run("artifacts", "add", "--session", session, log);
    this.run("run", "pattern_extractor", "--session", session, "--artifact", log);
    const report = join(this.dir, "report.txt");
    writeFileSync(report, "The group used 198.51.100.7, evil.example.org and the file 44d88612fea8a8f36de82e1278abb02f (T1059).\n");
    this.run("run", "threat_intel_ingester", "--session", session, "--artifact", report);
    this.run("plugins", "register", this.write("desk", desk));
    this.plan();
    this.say({ session_id: "s1", hook_event_name: "PreToolUse", tool_name: "Bash", tool_input: { command: "make test" }, tool_use_id: "t1" }, "hook", "claude-code");
    this.tries("run", "mail/lose", "--set", "to=lost@example.com");
    this.tries("run", "mail/check", "--set", "to=gone@example.com", "--key", "check-1");
    this.hold();
    this.run("feeds", "create", "mail/check", "--every", "24h", "--param", "to=ann@example.com");
    this.run("tokens", "create", "ci", "--scope", "run");
    for (const to of ["ann@example.com", "ben@example.com", "odd\u202eevil@example.com"]) this.waits("run", "mail/send", "--set", `to=${to}`, "--no-wait");
    const note = join(this.dir, "note.txt");
    writeFileSync(note, "The harbour report of March names three ships.");
    this.run("kb", "create", "notes");
    this.run("kb", "add", "--kb", "notes", note);
    this.run("agents", "create", "helper", "--prompt", "You help.");
  }

  /** Submits a plan, which waits for its approval, and returns its id. */
  plan(...more) {
    return JSON.parse(this.run(...more, "plans", "submit", "desk/plan", "--input", JSON.stringify({ intent: { type: "Board.Note.Post" } }), "--json")).id;
  }

  /** Registers a plugin, and a version of it that may do more and waits for a person. */
  hold() {
    const packed = (version, effects) => this.write(`held-${version}`, {
      "held.py": `from mortise import Plugin\n\nplugin = Plugin("held", version="${version}")\n\n@plugin.operator(effects=${JSON.stringify(effects)})\ndef say(text: str) -> str:\n    """Say it."""\n    return text\n\nplugin.run()\n`,
      "manifest.yaml": `name: held\nversion: ${version}\nowner: test\ndescription: Says a text.\nrunner: {kind: process, entry: held.py, protocol: "2"}\noperations:\n  say: {kind: operator, effects: ${JSON.stringify(effects)}, description: Say it., timeout: fast}\n`,
    });
    this.run("plugins", "register", packed("1.0.0", []));
    this.tries("plugins", "register", packed("1.0.1", ["mail_send"]));
  }

  /** Runs a command that may fail, and returns its status and what it prints. */
  tries(...args) {
    const { status, stdout, stderr } = spawnSync(program, args, { env: this.env(), encoding: "utf8" });
    return { status, stdout, stderr };
  }

  /** Runs a command that may fail with a JSON value as its input, and returns its status and what it prints. */
  sends(value, ...args) {
    const { status, stdout, stderr } = spawnSync(program, args, { env: this.env(), encoding: "utf8", input: JSON.stringify(value), maxBuffer: 1 << 26 });
    return { status, stdout, stderr };
  }

  /** Runs a command that ends with another status than 0. */
  waits(...args) {
    try {
      return this.run(...args);
    } catch (err) {
      if (err.status === 10) return err.stdout;
      throw err;
    }
  }

  /** Starts to serve and returns the link that signs the owner in. */
  async serve() {
    this.process = spawn(program, ["serve", "--listen", "127.0.0.1:0"], { env: this.env(), stdio: ["ignore", "pipe", "pipe"] });
    this.said = "";
    const link = await new Promise((found, failed) => {
      const hear = (chunk) => {
        this.said += chunk;
        const match = /http:\S+\/auth\/setup#\S+/.exec(this.said) ?? /http:\/\/127\S+/.exec(this.said);
        if (match && this.said.includes("Ctrl-C stops")) found(match[0]);
      };
      this.process.stdout.on("data", hear);
      this.process.stderr.on("data", hear);
      this.process.on("exit", (code) => failed(new Error(`the host ended with ${code}: ${this.said}`)));
    });
    this.origin = new URL(link).origin;
    return link;
  }

  async stop() {
    if (this.process !== undefined && this.process.exitCode === null) {
      const ended = new Promise((done) => this.process.once("exit", done));
      this.process.kill("SIGTERM");
      await ended;
    }
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** Signs a person in with the provider, in a browser of their own, by an invitation. */
export async function person(chrome, host, provider, principal) {
  const context = await chrome.newContext({ baseURL: host.origin });
  const page = await context.newPage();
  const secret = JSON.parse(host.run("users", "invite", principal, "--json")).link.split("#")[1];
  provider.account = principal.replace(/\W/g, "-");
  await page.goto(`/auth/invitation#${secret}`);
  await page.click("button");
  await page.waitForURL((url) => url.origin === host.origin && !url.pathname.startsWith("/auth/invitation") && !url.pathname.startsWith("/auth/callback"));
  await page.goto("/auth/");
  const own = page.locator('form[action="/auth/own"] button'); // only who alone has the account is a second person
  if ((await own.count()) > 0) await own.click();
  return page;
}

/** Signs a browser in by the host's first link. */
export async function signIn(page, link) {
  await page.goto(link);
  await page.click("button");
  await page.waitForURL((url) => !url.pathname.startsWith("/auth/setup"));
}

/** Notes all that a page must not do: errors, reports of its policy, requests to others. */
export function watch(page, origin) {
  const wrong = [];
  page.on("console", (message) => { // that an answer was no success is for the page to say, and no fault of it
    if (message.type() === "error" && !/status of (4\d\d|503)/.test(message.text())) wrong.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (err) => wrong.push(`error: ${err.message}`));
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.origin !== origin && url.protocol !== "data:" && url.protocol !== "blob:") wrong.push(`request: ${request.url()}`);
  });
  return wrong;
}
