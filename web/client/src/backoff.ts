/** A delay of ms ± 20 %, so that clients do not return at the same time. */
export function jitter(ms: number): number {
  return ms * (0.8 + Math.random() * 0.4);
}

/** Delay before the n-th retry, in ms: 0.5 s, doubled up to 15 s. */
export function backoff(n: number): number {
  return jitter(Math.min(500 * 2 ** n, 15_000));
}
