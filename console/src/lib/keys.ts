/** Shortcuts: single keys and pairs such as g then c. None counts while a person types. */
import { go } from "./route.svelte.ts";
import { settings } from "./settings.svelte.ts";

/** Where g and a letter lead. */
export const places: [key: string, name: string, path: string][] = [
  ["h", "Home", "/"], ["a", "Approvals", "/approvals"], ["c", "Calls", "/calls"], ["o", "Operations", "/operations"],
  ["p", "Plugins", "/plugins"], ["n", "Plans", "/plans"], ["e", "Agents", "/agents"], ["s", "Sessions", "/sessions"],
  ["k", "Knowledge", "/knowledge"], ["f", "Feeds", "/feeds"], ["y", "Policy", "/policy"], ["l", "Ledger", "/ledger"],
];

let led = 0; // when g was pressed

/** Handles a key; help opens the list of shortcuts. */
export function press(event: KeyboardEvent, help: () => void): void {
  if (!settings.shortcuts || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target instanceof Element && event.target.closest("input, textarea, select, [contenteditable], dialog") !== null) return;
  const second = Date.now() - led < 1500;
  led = 0;
  if (second) {
    const place = places.find(([key]) => key === event.key);
    if (place !== undefined) {
      event.preventDefault();
      go(place[2]);
    }
    return;
  }
  switch (event.key) {
    case "g":
      led = Date.now();
      break;
    case "?":
      event.preventDefault();
      help();
      break;
    case "j":
    case "k":
      step(event, event.key === "j" ? 1 : -1);
      break;
    case "/":
      document.querySelector<HTMLElement>("main [data-filter]")?.focus();
      event.preventDefault();
      break;
  }
}

/** Moves the focus to the next or the previous row of the page's list. */
function step(event: KeyboardEvent, by: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>("main [data-row]")];
  if (rows.length === 0) return;
  const here = rows.findIndex((row) => row === document.activeElement || row.contains(document.activeElement));
  rows[Math.max(0, Math.min(rows.length - 1, here < 0 ? (by > 0 ? 0 : rows.length - 1) : here + by))]?.focus();
  event.preventDefault();
}
