/** How many approvals wait for the person at this browser. */
import { request } from "./api/client.ts";
import { listen } from "./live.svelte.ts";
import { Refresh } from "./refresh.ts";

export const waiting = $state({ mine: 0 });

async function look(): Promise<void> {
  try {
    const { approvals } = await request("list-approvals", { query: { state: "open", page_size: 100 } });
    waiting.mine = approvals.length;
  } catch {
    // the page says what is wrong with the host; a count that is not known is not shown
    waiting.mine = 0;
  }
}

/** Keeps the count true as approvals come and go. */
export function watch(): void {
  void look();
  const refresh = new Refresh(look);
  listen((events) => {
    if (events.length === 0 || events.some((e) => e.noun === "approval")) refresh.ask();
  });
}
