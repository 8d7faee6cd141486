/** Where the person is: the path and the query of the address, and how pages are left. */

/** The address as pages read it. */
export const place = $state({ path: location.pathname, query: new URLSearchParams(location.search) });

/** What is asked before a page with changes that are not kept is left; returns whether to stay. */
export const guards = new Set<() => boolean>();

function follow(): void {
  place.path = location.pathname;
  place.query = new URLSearchParams(location.search);
}

/** Goes to a path of the console. A replaced one leaves no step to go back to. */
export function go(to: string, replace = false): void {
  for (const stays of guards) if (stays()) return;
  history[replace ? "replaceState" : "pushState"](null, "", to);
  const moved = place.path !== location.pathname;
  follow();
  if (moved) scrollTo(0, 0);
}

/** Changes members of the query and stays on the page. Empty ones are left out. */
export function ask(members: Record<string, string>): void {
  const query = new URLSearchParams(place.query);
  for (const [name, value] of Object.entries(members)) {
    if (value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  go(place.path + (text === "" ? "" : `?${text}`), true);
}

/** Lets links of the console be followed without loading the page again. */
export function start(): void {
  addEventListener("popstate", follow);
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (link === null || link.target !== "" || link.hasAttribute("download") || link.origin !== location.origin) return;
    if (/^\/(api|auth)\//.test(link.pathname) || link.getAttribute("href")?.startsWith("#") === true) return;
    event.preventDefault();
    go(link.pathname + link.search + link.hash);
  });
}

/** Returns the parts of a path that a pattern such as /calls/:id names; undefined where it does not fit. */
export function match(pattern: string, path: string): Record<string, string> | undefined {
  const wanted = pattern.split("/");
  const given = path.replace(/(.)\/$/, "$1").split("/");
  if (wanted.length !== given.length) return undefined;
  const found: Record<string, string> = {};
  for (const [i, part] of wanted.entries()) {
    const text = given[i] ?? "";
    if (part.startsWith(":")) {
      if (text === "") return undefined;
      try {
        found[part.slice(1)] = decodeURIComponent(text);
      } catch {
        return undefined;
      }
    } else if (part !== text) return undefined;
  }
  return found;
}

/** Returns the path of a page with names in it: to("calls", id). */
export function to(...parts: string[]): string {
  return `/${parts.map(encodeURIComponent).join("/")}`;
}
