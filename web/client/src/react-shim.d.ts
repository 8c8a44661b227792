/** What the hooks use of React, which is not among the packages of the shop. */
declare module 'react' {
  export function useState<T>(first: T): [T, (next: T) => void];
  export function useEffect(run: () => (() => void) | void, on: readonly unknown[]): void;
}
