/** The pages, by the pattern of their path. Those that few look at are loaded when they are. */
import type { Component } from "svelte";
import { match } from "./route.svelte.ts";
import Approvals from "../pages/Approvals.svelte";
import Approval from "../pages/Approval.svelte";
import Call from "../pages/Call.svelte";
import Calls from "../pages/Calls.svelte";
import Home from "../pages/Home.svelte";
import Missing from "../pages/Missing.svelte";

type Page = Component<Record<string, string>>;
type Module = Promise<{ default: Component<never> }>;

const later: [pattern: string, load: () => Module][] = [
  ["/operations", () => import("../pages/Operations.svelte")],
  ["/operations/:plugin/:operation", () => import("../pages/Operation.svelte")],
  ["/plugins", () => import("../pages/Plugins.svelte")],
  ["/plugins/:name", () => import("../pages/Plugin.svelte")],
  ["/decide/:id", () => import("../pages/Decide.svelte")],
  ["/plans", () => import("../pages/Plans.svelte")],
  ["/plans/:id", () => import("../pages/Plan.svelte")],
  ["/agents", () => import("../pages/Agents.svelte")],
  ["/agents/:id", () => import("../pages/Agent.svelte")],
  ["/agents/:id/conversations/:conversation", () => import("../pages/Conversation.svelte")],
  ["/sessions", () => import("../pages/Sessions.svelte")],
  ["/sessions/:id", () => import("../pages/Session.svelte")],
  ["/knowledge", () => import("../pages/Knowledge.svelte")],
  ["/knowledge/:id", () => import("../pages/KnowledgeBase.svelte")],
  ["/feeds", () => import("../pages/Feeds.svelte")],
  ["/feeds/:id", () => import("../pages/Feed.svelte")],
  ["/plugins/:plugin/feed", () => import("../pages/NewFeed.svelte")],
  ["/secrets", () => import("../pages/Secrets.svelte")],
  ["/policy", () => import("../pages/Policy.svelte")],
  ["/ledger", () => import("../pages/Ledger.svelte")],
  ["/users", () => import("../pages/Users.svelte")],
  ["/quotas", () => import("../pages/Quotas.svelte")],
  ["/tenants", () => import("../pages/Tenants.svelte")],
  ["/decisions", () => import("../pages/Decisions.svelte")],
  ["/tokens", () => import("../pages/Tokens.svelte")],
  ["/models", () => import("../pages/Models.svelte")],
  ["/settings", () => import("../pages/Settings.svelte")],
];

const now: [pattern: string, page: Component<never>][] = [
  ["/", Home], ["/calls", Calls], ["/calls/:id", Call], ["/approvals", Approvals], ["/approvals/:id", Approval],
];

/** Returns the page at a path with what the path names. */
export async function pageAt(path: string): Promise<{ page: Page; names: Record<string, string> }> {
  for (const [pattern, page] of now) {
    const names = match(pattern, path);
    if (names !== undefined) return { page: page as unknown as Page, names };
  }
  for (const [pattern, load] of later) {
    const names = match(pattern, path);
    if (names !== undefined) return { page: (await load()).default as unknown as Page, names };
  }
  return { page: Missing as unknown as Page, names: {} };
}
