/** The time that relative times are counted from; it moves on every two seconds. */
export const clock = $state({ now: Date.now() });

setInterval(() => {
  clock.now = Date.now();
}, 2_000);
