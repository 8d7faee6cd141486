/** How this browser shows the console. Nothing of the host's is kept here. */
interface Settings {
  theme: "system" | "light" | "dark";
  shortcuts: boolean;
  live: boolean;
}

const name = "mortise-console";

function read(): Settings {
  const usual: Settings = { theme: "system", shortcuts: true, live: true };
  try {
    const kept = JSON.parse(localStorage.getItem(name) ?? "{}") as Partial<Settings>;
    if (kept.theme === "light" || kept.theme === "dark") usual.theme = kept.theme;
    if (kept.shortcuts === false) usual.shortcuts = false;
    if (kept.live === false) usual.live = false;
  } catch {
    // what was kept cannot be read, so that the usual counts
  }
  return usual;
}

export const settings = $state(read());

/** Keeps the settings as they are now. */
export function keep(): void {
  try {
    localStorage.setItem(name, JSON.stringify(settings));
  } catch {
    // a browser that keeps nothing shows the console all the same
  }
}

const dark = matchMedia("(prefers-color-scheme: dark)");

/** Puts the theme on the page. */
export function paint(): void {
  const theme = settings.theme === "system" ? (dark.matches ? "dark" : "light") : settings.theme;
  document.documentElement.dataset["theme"] = theme;
}

dark.addEventListener("change", paint);
